"""Tasks under every construct that leads from a task to its awaiter; all but one stand still."""

import asyncio
import types
from collections.abc import AsyncIterator, Generator
from typing import Any

from recording import PREFIX, finish, settle, take


async def leaf() -> None:
    await asyncio.get_running_loop().create_future()


async def by_gather() -> None:
    await asyncio.gather(start("gathered task"), nested())


async def nested() -> None:
    task = asyncio.current_task()
    assert task
    task.set_name("gathered coroutine")
    await leaf()


def start(name: str) -> asyncio.Task[None]:
    return asyncio.create_task(leaf(), name=name)


async def by_gather_in_gather() -> None:
    await asyncio.gather(asyncio.gather(start("deep one")), asyncio.gather(asyncio.gather(start("deeper one"))))


async def by_shield() -> None:
    await asyncio.shield(start("shielded"))


async def by_wait_for() -> None:
    await asyncio.wait_for(start("timed"), 3600)


async def by_wait() -> None:
    await asyncio.wait({start("one of two"), start("two of two")})


async def by_as_completed() -> None:
    for next_one in asyncio.as_completed([start("completed")]):
        await next_one


async def by_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf(), name="grouped")


async def in_group_body() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf(), name="in body")
        await leaf()


async def numbers() -> AsyncIterator[int]:
    await leaf()
    yield 1


async def by_async_for() -> None:
    async for _ in numbers():
        pass


async def by_anext() -> None:
    await anext(numbers(), None)


async def by_athrow() -> None:
    async def stubborn() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await leaf()

    generator = stubborn()
    await anext(generator)
    await generator.aclose()  # type: ignore[attr-defined]


class Awaitable:
    def __await__(self) -> Generator[Any, None, None]:
        return leaf().__await__()


async def by_awaitable() -> None:
    await Awaitable()


@types.coroutine
def old_style() -> Generator[Any, None, None]:
    yield from leaf().__await__()


async def by_old_style() -> None:
    await old_style()


async def wait_on(task: asyncio.Task[None]) -> None:
    await task


async def cyclic() -> None:
    first: asyncio.Task[None]
    second: asyncio.Task[None]

    async def one() -> None:
        await second

    async def other() -> None:
        await first

    first, second = asyncio.create_task(one(), name="one"), asyncio.create_task(other(), name="other")
    await leaf()


async def recorder() -> None:
    await settle()
    outer()


def outer() -> None:
    finish(take())


SINGLE = [
    by_gather,
    by_gather_in_gather,
    by_shield,
    by_wait_for,
    by_wait,
    by_as_completed,
    by_group,
    in_group_body,
    by_async_for,
    by_anext,
    by_athrow,
    by_awaitable,
    by_old_style,
    cyclic,
]


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        for function in SINGLE:
            group.create_task(function(), name=function.__name__)
        popular = start("popular")
        for i in range(10):
            group.create_task(wait_on(popular), name=f"admirer {i}")
        group.create_task(leaf(), name="ascii\u00e9\u20ac\U0001f600\udcff")
        group.create_task(recorder(), name="recorder")


ABOVE = f"{PREFIX}main > __aexit__ > "
EXPECTED = {
    "gathered task": [ABOVE + "by_gather > leaf"],
    "gathered coroutine": [ABOVE + "by_gather > nested > leaf"],
    "deep one": [ABOVE + "by_gather_in_gather > leaf"],
    "deeper one": [ABOVE + "by_gather_in_gather > leaf"],
    "shielded": [ABOVE + "by_shield > leaf"],
    "timed": [ABOVE + "by_wait_for > wait_for > leaf"],
    "one of two": [ABOVE + "by_wait > wait > _wait > leaf"],
    "two of two": [ABOVE + "by_wait > wait > _wait > leaf"],
    "completed": [ABOVE + "by_as_completed > _wait_for_one > get > leaf"],
    "grouped": [ABOVE + "by_group > __aexit__ > leaf"],
    "in body": [ABOVE + "in_group_body > leaf > leaf"],
    "in_group_body": [ABOVE + "in_group_body > leaf"],
    "by_async_for": [ABOVE + "by_async_for > numbers > leaf"],
    "by_anext": [ABOVE + "by_anext > numbers > leaf"],
    "by_athrow": [ABOVE + "by_athrow > stubborn > leaf"],
    "by_awaitable": [ABOVE + "by_awaitable > leaf"],
    "by_old_style": [ABOVE + "by_old_style > old_style > leaf"],
    "cyclic": [ABOVE + "cyclic > leaf"],
    "popular": [ABOVE + "wait_on > leaf"],
    "ascii\u00e9\u20ac\U0001f600\\udcff": [ABOVE + "leaf"],
    "recorder": [ABOVE + "recorder > outer"],
}


def run() -> None:
    asyncio.run(main())


if __name__ == "__main__":
    run()
