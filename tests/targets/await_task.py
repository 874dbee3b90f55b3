"""A coroutine chain that awaits a task, which awaits another one."""

import asyncio


async def leaf() -> None:
    await asyncio.sleep(60)


async def branch() -> None:
    await asyncio.create_task(leaf(), name="leaf")


async def trunk() -> None:
    task = asyncio.create_task(branch(), name="branch")
    await task


async def main() -> None:
    await trunk()
