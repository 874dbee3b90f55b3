"""A task that gathers short children 300 times and then waits alone."""

import asyncio


async def child() -> None:
    await asyncio.sleep(0)


async def work_alone() -> None:
    await asyncio.Event().wait()


async def main() -> None:
    for _ in range(300):
        await asyncio.gather(child(), child())
    await work_alone()
