"""A task group of three members with a gather below each, and beside it other ways to await a task."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from targets.support import name_me

TASKS = 17


async def foo2(number: int, side: str) -> None:
    name_me(f"{side} of foo {number}")
    await asyncio.sleep(60)


async def foo12(number: int) -> None:
    await asyncio.gather(foo2(number, "left"), foo2(number, "right"))


async def foo11(number: int) -> None:
    await foo12(number)


async def foo1(number: int) -> None:
    name_me(f"foo {number}")
    await foo11(number)


async def runner() -> None:
    name_me("runner")
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(foo1(number))


async def leaf(name: str) -> None:
    name_me(name)
    await asyncio.sleep(60)


def task(name: str) -> "asyncio.Task[None]":
    return asyncio.create_task(leaf(name), name=name)


async def waits() -> None:
    name_me("waits")
    await asyncio.wait([task("waited")])


async def shields() -> None:
    name_me("shields")
    await asyncio.shield(task("shielded"))


async def limits() -> None:
    name_me("limits")
    async with asyncio.timeout(60):
        await task("limited")


async def main() -> None:
    ways: list[Coroutine[Any, Any, None]] = [runner(), waits(), shields(), limits()]
    await asyncio.gather(*ways)
