"""Memory is short at the n-th allocation of the extension, once or from then on, for every n of a short run."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

from counting import (
    CountingExporter,
    counter,
    fail_allocations,
    let_allocations_succeed,
    profiler,
    ticks,
    watch_extension,
)

from otel_asyncprof.errors import ProfilerUnavailable

TASKS = 40
TICKS = 4
ONCE, FROM_THEN_ON = 1, 1 << 62
UNTOUCHED_RUNS = 3


async def waits(future: asyncio.Future[None]) -> None:
    await future


async def nested(future: asyncio.Future[None], depth: int) -> None:
    await (nested(future, depth - 1) if depth else waits(future))


def handled_faults() -> list[signal.Signals]:
    """Those of the two signals of a fault that this process handles, as the kernel says it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("SigCgt"))
    return [number for number in (signal.SIGSEGV, signal.SIGBUS) if int(line.split()[1], 16) >> (number - 1) & 1]


async def run(first: int, count: int) -> str:
    """One run in which so many allocations fail, from the first-th on; what became of it."""
    exporter = CountingExporter()
    chosen = profiler(exporter, interval=3600)
    start_sampler = chosen._start_sampler

    def start_short_of_memory() -> None:
        fail_allocations(first, count)
        start_sampler()

    chosen._start_sampler = start_short_of_memory  # type: ignore[method-assign]
    try:
        chosen.start_or_raise()
    except ProfilerUnavailable as refusal:
        let_allocations_succeed()
        assert handled_faults() == [], first
        return str(refusal)
    while ticks() < TICKS:
        await asyncio.sleep(0.001)
    chosen.force_flush(30_000)  # may fail: it makes a request out of nothing
    let_allocations_succeed()
    assert chosen.force_flush(30_000), first
    chosen.shutdown()
    assert handled_faults() == [], first
    return "overflow" if exporter.overflows else "whole"


async def main() -> None:
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    kept = [loop.create_task(nested(future, number), name=f"task {number}") for number in range(TASKS)]
    await asyncio.sleep(0)
    watch_extension()
    ends: dict[int, list[str]] = {ONCE: [], FROM_THEN_ON: []}
    for count, found in ends.items():
        untouched = 0
        while untouched < UNTOUCHED_RUNS:
            failures = counter("code_failures")
            found.append(await run(len(found), count))
            untouched = untouched + 1 if counter("code_failures") == failures else 0
    print(json.dumps({"once": ends[ONCE], "from then on": ends[FROM_THEN_ON], "failures": counter("code_failures")}))
    future.set_result(None)
    await asyncio.gather(*kept)


asyncio.run(main())
