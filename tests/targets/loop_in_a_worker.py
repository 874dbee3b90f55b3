"""A synchronous function in a worker thread runs a loop of its own, inside a span of the task that called it."""

import asyncio
import threading

from targets.support import expect_span, phase, tracer

READY = threading.Event()


async def query() -> None:
    with tracer().start_as_current_span("query"):
        expect_span("query")
        READY.set()
        await asyncio.sleep(0.5)


def repository() -> None:
    asyncio.run(query())


async def handler() -> None:
    with tracer().start_as_current_span("request"):
        await asyncio.to_thread(repository)


async def main() -> None:
    with phase():
        await asyncio.create_task(handler())
