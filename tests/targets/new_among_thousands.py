"""A task that is made after the start works among 3,000 that wait; then another whose child works in its first step."""

import asyncio
import time

from targets.support import REPORT, phase, spin

COUNT = 3_000
SECONDS = 0.6


def work() -> None:
    begun = time.perf_counter()
    spin(SECONDS)
    REPORT.setdefault("worked", []).append(time.perf_counter() - begun)


async def busy() -> None:
    await asyncio.sleep(0)  # from here on, an eager task too runs on its own
    work()


async def child() -> None:
    work()


async def parent() -> None:
    await asyncio.sleep(0)
    await asyncio.create_task(child(), name="child")


async def rest() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    rests = [asyncio.create_task(rest()) for _ in range(COUNT)]
    await asyncio.sleep(0.1)
    for function in (busy, parent):
        with phase():
            await asyncio.create_task(function(), name=function.__name__)
    for one in rests:
        one.cancel()
