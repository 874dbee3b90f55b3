"""Threads that wait in every usual place while the loop is idle."""

import asyncio
import queue
import sys
import threading
import time

from targets.support import REPORT, sync_stack

TASKS = 2


def on_event() -> None:
    threading.Event().wait()


def on_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def on_queue() -> None:
    queue.Queue[int]().get()


def on_sleep() -> None:
    time.sleep(60)


def watch(main_thread: int) -> None:
    """Keeps what the main thread does while its loop is idle."""
    time.sleep(0.1)
    stack = sync_stack(sys._current_frames()[main_thread])
    while any(function.startswith("Conductor.") for function, *_ in stack):
        time.sleep(0.01)
        stack = sync_stack(sys._current_frames()[main_thread])
    REPORT["idle loop"] = stack


async def main() -> None:
    for function in (on_event, on_lock, on_queue, on_sleep):
        threading.Thread(target=function, name=function.__name__, daemon=True).start()
    watcher = threading.Thread(target=watch, args=[threading.get_ident()], daemon=True)
    watcher.start()
    while watcher.is_alive():
        await asyncio.sleep(0.03)
    await asyncio.create_task(asyncio.sleep(60), name="second")
