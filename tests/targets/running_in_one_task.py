"""CPU work five awaits deep in one task; the loop was started inside a synchronous function."""

import asyncio
from collections.abc import Callable

from targets.support import burn, phase


def sync_inner() -> None:
    burn(0.25)


def sync_outer() -> None:
    sync_inner()


async def inner_3() -> None:
    sync_outer()


async def inner_2() -> None:
    await inner_3()


async def inner_1() -> None:
    await inner_2()


async def outer() -> None:
    await asyncio.sleep(0)
    with phase():
        await inner_1()


async def main() -> None:
    await outer()


def starter(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def run(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    starter(loop_factory)
