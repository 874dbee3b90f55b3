"""gather() in a task in a gather(), four levels deep, one level with two coroutines."""

import asyncio

from targets.support import name_me


async def rest() -> None:
    await asyncio.sleep(60)


async def fourth(name: str) -> None:
    name_me(name)
    await rest()


async def third() -> None:
    await asyncio.gather(fourth("left"), fourth("right"))


async def second() -> None:
    await asyncio.create_task(third(), name="third")


async def first() -> None:
    name_me("first")
    await second()


async def main() -> None:
    await asyncio.gather(first())
