"""Ten thousand tasks with names of their own; while their samples are collected, this thread works on."""

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


def share_at_work_during(thread: threading.Thread) -> float:
    """Of the other thread's time, from its start to its end, in which this one has a CPU and the lock."""
    begun, worked = time.perf_counter(), time.thread_time()
    thread.start()
    while thread.is_alive():
        pass
    return (time.thread_time() - worked) / (time.perf_counter() - begun)


async def main() -> None:
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(rest(), name=f"rest {number}") for number in range(COUNT)]
    await asyncio.sleep(0)
    sys.setswitchinterval(1e-4)
    REPORT["samples"], REPORT["at_work"], REPORT["at_work_beside_a_sleep"] = [], [], []
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
            REPORT["at_work"].append(share_at_work_during(threading.Thread(target=profiler.force_flush)))
            sleep = threading.Thread(target=time.sleep, args=(time.perf_counter() - begun,))
            REPORT["at_work_beside_a_sleep"].append(share_at_work_during(sleep))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
