"""Async generators suspended in every way they can be driven."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from targets.support import name_me


async def dependency() -> None:
    await asyncio.sleep(60)


async def inner_numbers() -> AsyncIterator[int]:
    await dependency()
    yield 1


async def numbers() -> AsyncIterator[int]:
    async for number in inner_numbers():
        yield number


async def stubborn() -> AsyncIterator[int]:
    try:
        yield 1
    except ValueError:
        await dependency()
    finally:
        await dependency()


@asynccontextmanager
async def resource() -> AsyncIterator[None]:
    yield
    await dependency()


async def in_for() -> None:
    name_me("for")
    async for _ in numbers():
        pass


async def in_comprehension() -> None:
    name_me("comprehension")
    _ = [number async for number in numbers()]


async def in_next() -> None:
    name_me("next")
    await anext(numbers())


async def in_next_with_default() -> None:
    name_me("next with default")
    await anext(numbers(), 0)


async def in_send() -> None:
    name_me("send")
    await numbers().asend(None)


async def in_throw() -> None:
    name_me("throw")
    generator = stubborn()
    await generator.__anext__()
    await generator.athrow(ValueError())


async def in_close() -> None:
    name_me("close")
    generator = stubborn()
    await generator.__anext__()
    await generator.aclose()


async def in_manager() -> None:
    name_me("manager")
    async with resource():
        pass


async def main() -> None:
    ways = [in_for, in_comprehension, in_next, in_next_with_default, in_send, in_throw, in_close, in_manager]
    await asyncio.gather(*(way() for way in ways))
