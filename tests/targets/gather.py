"""gather() of named tasks, of coroutines, and of a chain four coroutines deep."""

import asyncio

from targets.support import name_me


async def by_task() -> None:
    await asyncio.sleep(60)


async def by_coroutine() -> None:
    name_me("coroutine")
    await asyncio.sleep(60)


async def deepest() -> None:
    await asyncio.sleep(60)


async def deeper() -> None:
    await deepest()


async def deep() -> None:
    name_me("deep")
    await deeper()


async def collect() -> None:
    named = asyncio.create_task(by_task(), name="task")
    await asyncio.gather(named, by_coroutine(), deep())


async def main() -> None:
    await collect()
