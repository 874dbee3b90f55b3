"""Groups of two children that live 20 to 60 ms, constantly made anew in every way, among 300 tasks that sleep."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from targets.support import phase

LINES_PER_WAY = 8
SECONDS = 1.0


async def child() -> None:
    await asyncio.sleep(random.uniform(0.02, 0.06))


async def by_gather() -> None:
    await asyncio.gather(child(), child())


async def by_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(child())
        group.create_task(child())


async def by_wait() -> None:
    await asyncio.wait([asyncio.create_task(child()), asyncio.create_task(child())])


async def by_task() -> None:
    await asyncio.create_task(child())


async def by_shield() -> None:
    await asyncio.shield(child())


WAYS = [by_gather, by_group, by_wait, by_task, by_shield]


async def line(way: Callable[[], Awaitable[None]], end: float) -> None:
    while asyncio.get_running_loop().time() < end:
        await asyncio.ensure_future(way())


async def lines(end: float) -> None:
    await asyncio.gather(*(line(way, end) for way in WAYS for _ in range(LINES_PER_WAY)))


async def rest() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    rests = [asyncio.create_task(rest()) for _ in range(300)]
    everything = asyncio.create_task(lines(asyncio.get_running_loop().time() + 0.1 + SECONDS + 0.5))
    await asyncio.sleep(0.1)  # until every line is awaited
    with phase():
        await asyncio.sleep(SECONDS)
    await everything
    for one in rests:
        one.cancel()
