"""One coroutine function at the same time as a task and awaited in place."""

import asyncio

from targets.support import phase


async def pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def main() -> None:
    await asyncio.sleep(0)
    with phase():
        task = asyncio.create_task(pause(0.6), name="task")
        await pause(0.3)
        await task
