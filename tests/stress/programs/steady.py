"""A program whose stacks stay the same, until the sampler has allocated nothing for a while."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time

from counting import CountingExporter, counter, opened_paths, profiler, ticks, wait_for, watch_sampler

TASKS = 200
TICKS, INTERVALS = 500, 3
MAX_STRETCHES = 40


async def sleeps() -> None:
    while True:
        await asyncio.sleep(0.05)


async def gathers() -> None:
    await asyncio.gather(*(sleeps() for _ in range(TASKS)))


def hashes(end: threading.Event) -> None:
    """Most of its time is in C, without the interpreter's lock."""
    while not end.is_set():
        hashlib.pbkdf2_hmac("sha256", b"a", b"b", 20_000)
        time.sleep(0.005)


def sums() -> tuple[int, int, int]:
    return counter("thread_allocations"), counter("thread_frees"), counter("thread_maps")


def main() -> None:
    loop = asyncio.new_event_loop()
    threading.Thread(target=lambda: loop.run_until_complete(gathers()), daemon=True).start()
    end = threading.Event()
    threading.Thread(target=hashes, args=(end,), daemon=True).start()
    exporter = CountingExporter()
    with profiler(exporter):
        watch_sampler()
        stretches = []
        while (not stretches or any(stretches[-1])) and len(stretches) < MAX_STRETCHES:
            before, tick, interval = sums(), ticks(), exporter.intervals
            wait_for(lambda to=tick + TICKS: ticks() >= to)
            wait_for(lambda to=interval + INTERVALS: exporter.intervals >= to)
            stretches.append([now - then for now, then in zip(sums(), before, strict=True)])
        report = {"stretches": stretches, "opened": opened_paths(), "opens": counter("thread_opens"), "ticks": ticks()}
    print(json.dumps(report), flush=True)
    end.set()


main()
