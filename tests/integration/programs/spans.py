"""An application that knows of spans and not of profiles; its argument says how it ends."""

import asyncio
import sys
import time

from opentelemetry import trace

tracer = trace.get_tracer("shop")


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def query() -> None:
    with tracer.start_as_current_span("query"):
        await asyncio.sleep(0.3)


async def handle() -> None:
    with tracer.start_as_current_span("request"):
        await asyncio.gather(query(), query())
        with tracer.start_as_current_span("computation"):
            burn(0.15)


async def leave() -> None:
    sys.exit(4)


async def main(end: str) -> None:
    await asyncio.gather(handle(), handle())
    match end:
        case "exit":
            sys.exit(3)
        case "error":
            raise ValueError("unhandled")
        case "exit in a task":
            await asyncio.create_task(leave())


asyncio.run(main(sys.argv[1]))
print("done")
