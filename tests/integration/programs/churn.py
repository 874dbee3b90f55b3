"""Frames, tasks, generators and threads that end all the time beside a profiler; prints what that has seen, as JSON.

usage: churn.py SECONDS
"""

import asyncio
import contextlib
import gc
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator

from otel_asyncprof.testing import capture

THREADS, TASKS, DEPTH = 20, 200, 60


def dive(depth: int) -> None:
    if depth:
        return dive(depth - 1)
    raise KeyError


def steps() -> Iterator[int]:
    try:
        yield from range(DEPTH)
    finally:
        with contextlib.suppress(KeyError):
            dive(DEPTH)


async def numbers() -> AsyncIterator[int]:
    for number in range(DEPTH):
        yield number


async def descend(depth: int) -> None:
    if depth:
        return await descend(depth - 1)
    await asyncio.sleep(0)
    raise KeyError


async def churn(end: float) -> None:
    while time.monotonic() < end:
        with contextlib.suppress(KeyError):
            await descend(DEPTH)
        async for _ in numbers():
            break
        next(steps())
        await asyncio.create_task(asyncio.sleep(0))


def short_life() -> None:
    generator = steps()
    next(generator)
    generator.close()


def make_threads(end: float) -> None:
    while time.monotonic() < end:
        threads = [threading.Thread(target=short_life) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def collect_garbage(end: float) -> None:
    while time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)


async def last_moment() -> None:
    await asyncio.sleep(0.5)


async def main(seconds: float) -> None:
    end = time.monotonic() + seconds
    churning = [asyncio.to_thread(work, end) for work in (make_threads, collect_garbage)]
    await asyncio.gather(*churning, *(churn(end) for _ in range(TASKS)))
    await last_moment()


with capture(rate=1000) as profile:
    asyncio.run(main(float(sys.argv[1])))
unreadable = {"<unreadable>", "<truncated>"}
torn = sum(sample.wall_ns for sample in profile.samples if unreadable & set(sample.functions))
print(
    json.dumps(
        {
            "ticks": profile.stats.ticks,
            "samples": profile.stats.samples,
            "drops": sum(profile.stats.drops.values()),
            "torn": torn / sum(sample.wall_ns for sample in profile.samples),
            "last moment": any("last_moment" in sample.functions for sample in profile.samples),
        }
    )
)
