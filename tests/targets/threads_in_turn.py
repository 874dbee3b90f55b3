"""150 threads that wait, one that works and sleeps in turn, one that works now and then: each within one frame."""

import asyncio
import threading
import time
import zlib

from targets.support import REPORT, phase

WAITING = 150
TEXT = bytes(range(256)) * 1_000
ended = threading.Event()
has_ended: list[str] = []  # asked without a call, which would be another frame


def wait() -> None:
    ended.wait()


def nap_and_work() -> None:
    while "phase" not in has_ended:
        time.sleep(0.015)
        zlib.compress(TEXT, 9)


def work_in_bursts() -> None:
    spent = 0.0
    while "bursts" not in has_ended:
        time.sleep(0.3)
        begin = now = time.perf_counter()
        while now < begin + 0.15:
            now = time.perf_counter()
        spent += now - begin
    REPORT["bursts"] = spent


async def main() -> None:
    threads = [threading.Thread(target=wait, name=f"waits {number}") for number in range(WAITING)]
    threads += [threading.Thread(target=work, name=work.__name__) for work in (nap_and_work, work_in_bursts)]
    for thread in threads:
        thread.start()
    await asyncio.sleep(0.1)
    with phase():
        await asyncio.sleep(3)
        has_ended.append("bursts")
        await asyncio.to_thread(threads[-1].join)
    has_ended.append("phase")
    ended.set()
