"""The ways to run uvloop: uvloop.run(), and its policy under asyncio.run()."""

import asyncio
from collections.abc import Callable

import uvloop
from targets.support import phase


async def leaf() -> None:
    await asyncio.sleep(0.4)


async def main() -> None:
    await asyncio.sleep(0.02)
    with phase():
        await asyncio.gather(asyncio.create_task(leaf(), name="leaf"))


def by_run() -> None:
    uvloop.run(main())


def by_policy() -> None:
    uvloop.install()
    asyncio.run(main())


def run(_: Callable[[], asyncio.AbstractEventLoop]) -> None:
    by_run()
    by_policy()
