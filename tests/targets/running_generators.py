"""CPU work inside async generators, generators and __await__ objects that are running."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

from targets.support import burn, phase


async def inner_numbers() -> AsyncIterator[int]:
    burn(0.12)
    yield 1


async def numbers() -> AsyncIterator[int]:
    async for number in inner_numbers():
        yield number


def third() -> Iterator[int]:
    burn(0.12)
    yield 3


def second() -> Iterator[int]:
    yield from third()


def first() -> Iterator[int]:
    yield from second()


class Awaitable:
    def __await__(self) -> Generator[Any, None, None]:
        burn(0.12)
        yield from asyncio.sleep(0).__await__()


async def main() -> None:
    await asyncio.sleep(0)
    with phase():
        async for _ in numbers():
            pass
        _ = [number async for number in numbers()]
        list(first())
        await Awaitable()
