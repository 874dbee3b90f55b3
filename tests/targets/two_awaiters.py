"""One task awaited by two others."""

import asyncio


async def shared() -> None:
    await asyncio.sleep(60)


async def one(task: "asyncio.Task[None]") -> None:
    await task


async def two(task: "asyncio.Task[None]") -> None:
    await asyncio.shield(task)


async def main() -> None:
    task = asyncio.create_task(shared(), name="shared")
    await asyncio.gather(asyncio.create_task(one(task), name="one"), asyncio.create_task(two(task), name="two"))
