"""N tasks of five kinds that wait, one that works all the time, and one that measures how late the loop is.

With the profiler at its defaults and without it, in turn; what was seen is printed as JSON.

usage: many_tasks.py TASKS
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

from otel_asyncprof import ProfilerConfig
from otel_asyncprof.testing import capture

PAIRS = 4
SECONDS_WITHOUT, SECONDS_WITH = 0.6, 1.5
TURN_SECONDS = 0.001
LAG_PERIOD_SECONDS = 0.002
PIECE_SECONDS = 0.1
FUNCTIONS = ["sleeps", "waits_for_an_event", "member_of_a_gather", "under_a_timeout", "reads_a_queue"]
TENTHS = [1, 2, 3, 2, 2]  # of the tasks, in the order of the functions

used_cpu = 0.0  # by busy()


async def sleeps() -> None:
    await asyncio.sleep(3600)


async def waits_for_an_event(event: asyncio.Event) -> None:
    await event.wait()


async def member_of_a_gather() -> None:
    await asyncio.sleep(3600)


async def gathers(count: int) -> None:
    await asyncio.gather(*(member_of_a_gather() for _ in range(count)))


async def under_a_timeout() -> None:
    async with asyncio.timeout(3600):
        await asyncio.get_running_loop().create_future()


async def reads_a_queue(queue: "asyncio.Queue[int]") -> None:
    await queue.get()


async def busy() -> None:
    """Works 1 ms of every turn of the loop."""
    global used_cpu
    while True:
        begun = time.thread_time()
        while time.thread_time() - begun < TURN_SECONDS:
            pass
        used_cpu += time.thread_time() - begun
        await asyncio.sleep(0)


async def lag(seconds: float) -> list[float]:
    """How late the latest of some 50 timers is, in seconds, for each piece of 0.1 s."""
    loop = asyncio.get_running_loop()
    pieces, end = [], loop.time() + seconds
    while loop.time() < end:
        latest, end_of_piece = 0.0, loop.time() + PIECE_SECONDS
        while loop.time() < end_of_piece:
            due = loop.time() + LAG_PERIOD_SECONDS
            await asyncio.sleep(LAG_PERIOD_SECONDS)
            latest = max(latest, loop.time() - due)
        pieces.append(latest)
    return pieces


def seconds_by_function(samples: "list[Any]") -> dict[str, float]:
    """Wall time of the samples in each of the five functions."""
    return {
        function: sum(sample.wall_ns for sample in samples if function in sample.functions) / 1e9
        for function in FUNCTIONS
    }


async def profiled() -> dict[str, Any]:
    """What one stretch with the profiler gave."""
    defaults = ProfilerConfig()
    with capture(
        defaults.rate, cpu_budget=defaults.cpu_budget, sample_attributes=defaults.sample_attributes
    ) as profile:
        begun, cpu, thread_cpu = time.perf_counter(), used_cpu, time.thread_time()
        late = await lag(SECONDS_WITH)
        seconds, cpu, thread_cpu = time.perf_counter() - begun, used_cpu - cpu, time.thread_time() - thread_cpu
    return {
        "late": late,
        "seconds": seconds,
        "bytes": sum(map(len, profile.requests)),
        "sampler_cpu": profile.stats.sampler_cpu_seconds,
        "ticks": profile.stats.ticks,
        "window": profile.stats.window,
        "waited": seconds_by_function(profile.samples),
        "busy_cpu": cpu,
        "busy_cpu_seen": sum(sample.cpu_ns for sample in profile.samples if "busy" in sample.functions) / 1e9,
        "thread_cpu": thread_cpu,
        "thread_cpu_seen": sum(s.cpu_ns for s in profile.samples if s.thread_name == "MainThread") / 1e9,
    }


async def main(count: int) -> None:
    event, queue = asyncio.Event(), asyncio.Queue[int]()
    counts = [count * tenths // 10 for tenths in TENTHS]
    kept = [asyncio.create_task(sleeps()) for _ in range(counts[0])]
    kept += [asyncio.create_task(waits_for_an_event(event)) for _ in range(counts[1])]
    kept += [asyncio.create_task(gathers(counts[2]))]
    kept += [asyncio.create_task(under_a_timeout()) for _ in range(counts[3])]
    kept += [asyncio.create_task(reads_a_queue(queue)) for _ in range(counts[4])]
    kept += [asyncio.create_task(busy())]
    await asyncio.sleep(0.2)
    pairs = [{"late_without": await lag(SECONDS_WITHOUT), **await profiled()} for _ in range(PAIRS)]
    print(json.dumps({"counts": dict(zip(FUNCTIONS, counts, strict=True)), "pairs": pairs}), flush=True)
    os._exit(0)  # 50,000 cancellations tell nothing


asyncio.run(main(int(sys.argv[1])))
