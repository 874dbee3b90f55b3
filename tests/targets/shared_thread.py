"""One task works, a callback works, a plain thread works, and fifty tasks sleep all the time."""

import asyncio
import threading
import time

from targets.support import phase, spin


def work_of_task() -> None:
    spin(0.03)


def work_of_callback() -> None:
    spin(0.02)


def work_of_thread() -> None:
    for _ in range(12):
        spin(0.02)
        time.sleep(0.04)


async def worker() -> None:
    for _ in range(12):
        work_of_task()
        asyncio.get_running_loop().call_soon(work_of_callback)
        await asyncio.sleep(0.03)


async def sleeper() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    sleepers = [asyncio.create_task(sleeper(), name=f"sleeper {number}") for number in range(50)]
    await asyncio.sleep(0.05)
    with phase():
        thread = threading.Thread(target=work_of_thread)
        thread.start()
        await asyncio.create_task(worker())
        await asyncio.to_thread(thread.join)
    for one in sleepers:
        one.cancel()
