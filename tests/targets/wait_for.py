"""wait_for() of a coroutine and of a task."""

import asyncio
import sys

from targets.support import name_me


async def slow() -> None:
    await asyncio.sleep(60)


async def slow_coroutine() -> None:
    name_me("of coroutine" if sys.version_info >= (3, 12) else "slow coroutine")
    await slow()


async def of_coroutine() -> None:
    name_me("of coroutine")
    await asyncio.wait_for(slow_coroutine(), timeout=60)


async def of_task() -> None:
    name_me("of task")
    await asyncio.wait_for(asyncio.create_task(slow(), name="slow"), timeout=60)


async def main() -> None:
    await asyncio.gather(of_coroutine(), of_task())
