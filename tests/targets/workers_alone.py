"""Twenty workers that gather children for 50 ms and then wait alone for 100 ms, over and over."""

import asyncio

from targets.support import name_me, phase


async def child() -> None:
    name_me("child")
    await asyncio.sleep(0.05)


async def alone() -> None:
    await asyncio.sleep(0.1)


async def worker() -> None:
    for _ in range(6):
        await asyncio.gather(child(), child())
        await alone()


async def main() -> None:
    with phase():
        await asyncio.gather(*(worker() for _ in range(20)))
