"""A request that runs, blocks, waits, is ready and runs two queries, each for a time that it measures itself."""

import asyncio
import contextvars
import itertools
import json
import sys
import time

from opentelemetry import trace
from opentelemetry.trace import SpanKind

tracer = trace.get_tracer("shop")


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def query(seconds: float) -> None:
    attributes = {"db.system.name": "postgresql", "db.query.text": f"SELECT * FROM lines WHERE order_id = {seconds}"}
    with tracer.start_as_current_span("SELECT lines", kind=SpanKind.CLIENT, attributes=attributes):
        await asyncio.sleep(seconds)


async def hog() -> None:
    with tracer.start_as_current_span("GET /report", kind=SpanKind.SERVER):
        burn(0.5)


async def request() -> dict[str, float]:
    with tracer.start_as_current_span("GET /orders", kind=SpanKind.SERVER):
        cpu, marks = time.thread_time(), [time.perf_counter()]
        burn(0.5)
        cpu = time.thread_time() - cpu
        marks.append(time.perf_counter())
        time.sleep(0.5)
        marks.append(time.perf_counter())
        await asyncio.sleep(0.6)
        marks.append(time.perf_counter())
        other = asyncio.create_task(hog(), context=contextvars.Context())
        await asyncio.sleep(0)
        marks.append(time.perf_counter())
        await asyncio.gather(query(0.3), query(0.5))
        marks.append(time.perf_counter())
    await other
    ran, blocked, waited, ready, queried = (after - before for before, after in itertools.pairwise(marks))
    return {"cpu": cpu, "ran": ran, "blocked": blocked, "waited": waited, "ready": ready, "queried": queried}


async def main() -> None:
    print(json.dumps(await request()), flush=True)


asyncio.run(main())
sys.exit(5)
