"""Ten thousand tasks with names of their own; while their samples are collected, this thread watches for its pauses."""

import asyncio
import sys
import threading
import time

from targets.support import REPORT, phase

from otel_asyncprof import _profiler

COUNT = 10_000
COLLECTIONS = 6
SECONDS_OF_SAMPLING = 0.5


async def rest() -> None:
    await asyncio.sleep(600)


def longest_pause_during(thread: threading.Thread) -> float:
    """Of this thread, which runs nothing but this loop, from the other one's start to its end."""
    longest, last = 0.0, time.perf_counter()
    thread.start()
    while thread.is_alive():
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


async def main() -> None:
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(rest(), name=f"rest {number}") for number in range(COUNT)]
    await asyncio.sleep(0)
    sys.setswitchinterval(1e-4)
    REPORT["longest_pauses"], REPORT["samples"], REPORT["of_sleeps"] = [], [], []
    with phase():
        profiler = _profiler._active()
        assert profiler is not None
        for _ in range(COLLECTIONS):
            before = profiler.stats()
            end = time.perf_counter() + SECONDS_OF_SAMPLING
            while time.perf_counter() < end:
                await asyncio.sleep(0)
            after = profiler.stats()
            assert before is not None
            assert after is not None
            REPORT["samples"].append(after["samples"] - before["samples"])
            begun = time.perf_counter()
            REPORT["longest_pauses"].append(longest_pause_during(threading.Thread(target=profiler.force_flush)))
            taken = time.perf_counter() - begun
            REPORT["of_sleeps"].append(longest_pause_during(threading.Thread(target=time.sleep, args=(taken,))))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
