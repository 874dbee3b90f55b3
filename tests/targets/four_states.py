"""A task in each state: running, blocked, waiting and ready; and threads that work and wait."""

import asyncio
import threading
import time

from targets.support import burn, phase


async def runs() -> None:
    burn(0.3)


async def blocks() -> None:
    time.sleep(0.3)


async def waits() -> None:
    await asyncio.sleep(10)


async def could_run(event: asyncio.Event) -> None:
    await event.wait()


def thread_waits(done: threading.Event) -> None:
    done.wait()


async def main() -> None:
    done = threading.Event()
    thread = threading.Thread(target=thread_waits, args=[done], name="waiting thread")
    thread.start()
    for function in (runs, blocks):
        event = asyncio.Event()
        waiting = asyncio.create_task(waits(), name="waits")
        ready = asyncio.create_task(could_run(event), name="could run")
        await asyncio.sleep(0.02)
        event.set()
        with phase():
            await function()
        await ready
        waiting.cancel()
    done.set()
    thread.join()
