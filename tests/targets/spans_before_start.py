"""Spans that were current before the profiler started: in a waiting task, in the running one and in a thread."""

import asyncio
import threading

from targets.support import burn, expect_span, phase, tracer


async def waiting() -> None:
    with tracer().start_as_current_span("waiting"):
        expect_span("waiting")
        await asyncio.sleep(60)


async def child() -> None:
    await asyncio.sleep(60)


def working() -> None:
    burn(0.2)


def in_thread(ready: threading.Event) -> None:
    with tracer().start_as_current_span("thread"):
        expect_span("in_thread")
        ready.set()
        threading.Event().wait()


async def main() -> None:
    ready = threading.Event()
    threading.Thread(target=in_thread, args=[ready], name="thread", daemon=True).start()
    ready.wait()
    with tracer().start_as_current_span("running"):
        expect_span("working")
        expect_span("child")
        tasks = [asyncio.create_task(waiting()), asyncio.create_task(child())]
        await asyncio.sleep(0)
        with phase():
            working()
            await asyncio.sleep(0.2)
    for task in tasks:
        task.cancel()
