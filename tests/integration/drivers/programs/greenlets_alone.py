"""Greenlets that work before any of their thread has been seen to wait, in the main thread and in another; no spans."""

from __future__ import annotations

import asyncio

import support
from sqlalchemy.util import await_only, greenlet_spawn


def work() -> None:
    support.burn()


def pause() -> None:
    await_only(asyncio.sleep(support.SLOW_SECONDS))


async def main_of_thread() -> None:
    await greenlet_spawn(work)
    await greenlet_spawn(pause)
    await greenlet_spawn(work)


def thread() -> None:
    asyncio.run(main_of_thread())


async def main() -> None:
    await greenlet_spawn(work)
    await support.repeat(lambda: asyncio.to_thread(thread))
    await greenlet_spawn(work)


if __name__ == "__main__":
    support.run(main)
