"""Children that nobody awaits, made in every way there is, outside any span."""

import asyncio

KEPT = []


async def child() -> None:
    await asyncio.sleep(60)


async def parent() -> None:
    loop = asyncio.get_running_loop()
    KEPT.append(asyncio.create_task(child(), name="create_task"))
    KEPT.append(loop.create_task(child(), name="loop.create_task"))
    KEPT.append(asyncio.ensure_future(child()))
    KEPT[-1].set_name("ensure_future")
    KEPT.append(asyncio.Task(child(), name="Task"))
    awaited = asyncio.create_task(child(), name="awaited")
    await awaited


async def main() -> None:
    await parent()
