"""Async generators that hold an active span and are left early: closed elsewhere, collected, cancelled, failed."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine

from targets.support import burn, expect_span, named, phase, tracer


async def stream() -> AsyncIterator[int]:
    with tracer().start_as_current_span("stream"):
        for number in range(9):
            yield number


async def closed_elsewhere() -> None:
    generator = stream()
    await anext(generator)
    await asyncio.create_task(generator.aclose())  # type: ignore[attr-defined]


async def collected() -> None:
    async for _ in stream():
        break
    gc.collect()
    await asyncio.sleep(0.01)


async def failed() -> None:
    try:
        async for _ in stream():
            raise KeyError
    except KeyError:
        await asyncio.sleep(0.01)


async def cancelled() -> None:
    try:
        async with asyncio.timeout(0.01):
            async for _ in stream():
                await asyncio.sleep(60)
    except TimeoutError:
        await asyncio.sleep(0.01)


async def afterwards() -> None:
    burn(0.05)
    await asyncio.sleep(0.1)


async def leaves(way: Callable[[], Coroutine[None, None, None]]) -> None:
    """Works on in the same task after it left the generator."""
    await way()
    after = named(afterwards, f"after {way.__name__}")
    expect_span(f"after {way.__name__}")
    await after()


async def main() -> None:
    with phase():
        for way in (closed_elsewhere, collected, failed, cancelled):
            await asyncio.create_task(leaves(way))
        outside = named(afterwards, "outside")
        expect_span("outside")
        await outside()
