"""Does something of all that an option may change, and tells what it sees of itself; code sets it up when told so.

The first argument is "long", or "short" where it matters only whether profiles are sent, and where to.
"""

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind

from otel_asyncprof import Profiler
from otel_asyncprof.instrumentor import AsyncProfInstrumentor

TICKS_OF_A_STEP = {"long": 15, "short": 1}[sys.argv[1]]
INTERVALS = 2
RESTING_TASKS = 1000
DEPTH = 20

if not isinstance(trace.get_tracer_provider(), TracerProvider):
    trace.set_tracer_provider(TracerProvider())
spans = InMemorySpanExporter()
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
tracer = trace.get_tracer("options")
unsampled = TracerProvider(sampler=ALWAYS_OFF).get_tracer("unsampled")

match sys.argv[2:]:
    case ["instrument", options]:
        AsyncProfInstrumentor().instrument(**json.loads(options))
        profiler = AsyncProfInstrumentor().profiler
    case ["Profiler", options]:
        profiler = Profiler(**json.loads(options))
        profiler.start()
    case _:
        profiler = AsyncProfInstrumentor().profiler


def ticks() -> int:
    return profiler.stats()["ticks"]


def exports() -> int:
    return profiler.status().exported_intervals


async def until_seen() -> None:
    """Until the sampler has looked often enough; mostly running, as it looks at what runs in each tick."""
    if profiler is None or not profiler.is_running:
        return
    end = ticks() + TICKS_OF_A_STEP
    while ticks() < end:
        end_of_turn = time.perf_counter() + 0.005
        while time.perf_counter() < end_of_turn:
            pass
        await asyncio.sleep(0.001)


async def deep(depth: int) -> None:
    if depth:
        await deep(depth - 1)
    else:
        await until_seen()


async def query() -> None:
    with tracer.start_as_current_span("slow query", kind=SpanKind.CLIENT):
        await asyncio.sleep(0.15)
        await deep(DEPTH)


async def request() -> None:
    with tracer.start_as_current_span("request", kind=SpanKind.SERVER):
        await query()
        with tracer.start_as_current_span("quick call", kind=SpanKind.SERVER):
            pass
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass


async def unsampled_work() -> None:
    with unsampled.start_as_current_span("unsampled"):
        await until_seen()


async def main() -> dict[str, float]:
    # A profiler that was there before the provider learns of it by the first span that becomes current.
    with tracer.start_as_current_span("first"):
        pass
    resting = [asyncio.create_task(asyncio.sleep(3600)) for _ in range(RESTING_TASKS)]
    await asyncio.create_task(request())
    await asyncio.create_task(unsampled_work())
    running = profiler is not None and profiler.is_running
    seen = {"running": running, "window": profiler.stats()["window"] if running else 0}
    while running and profiler.config.interval < 1 and exports() < INTERVALS:
        await asyncio.sleep(0.02)
    for task in resting:
        task.cancel()
    return seen


def catches(number: signal.Signals) -> bool:
    lines = Path("/proc/self/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(caught >> (number - 1) & 1)


seen = asyncio.run(main())
seen |= {
    "catches SIGTERM": catches(signal.SIGTERM),
    "thread context": "OTEL_CTX" in Path("/proc/self/maps").read_text(),
    "spans": {
        span.name: {"id": span.context.span_id, "attributes": sorted(span.attributes)}
        for span in spans.get_finished_spans()
    },
}
print(json.dumps(seen))
