"""Awaitables that are no coroutines: __await__ objects, generator-based coroutines, an iterator and C objects."""

import asyncio
import functools
import types
from collections.abc import Generator, Iterator
from typing import Any

from targets.support import name_me


async def dependency() -> None:
    await asyncio.sleep(60)


class ByGenerator:
    def __await__(self) -> Generator[Any, None, None]:
        yield from dependency().__await__()


class ByCoroutine:
    def __await__(self) -> Generator[Any, None, None]:
        return dependency().__await__()


class ByIterator:
    """Its __next__ has no frame of its own while suspended."""

    def __await__(self) -> Iterator[Any]:
        return self

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        future = asyncio.get_running_loop().create_future()
        future._asyncio_future_blocking = True
        return future


@types.coroutine
def old_style() -> Generator[Any, None, None]:
    yield from older()


def older() -> Generator[Any, None, None]:
    yield from asyncio.get_running_loop().create_future()


async def waits(name: str, awaitable: Any) -> None:
    name_me(name)
    await awaitable


async def main() -> None:
    await asyncio.gather(
        waits("generator", ByGenerator()),
        waits("coroutine", ByCoroutine()),
        waits("iterator", ByIterator()),
        waits("old style", old_style()),
        waits("partial", functools.partial(dependency)()),
        waits("future", asyncio.get_running_loop().create_future()),
    )
