"""What the programs of the driver tests share: requests, repeated under a profiler until seen, and what it saw."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from otel_asyncprof import Profiler
from otel_asyncprof.export.in_memory import InMemoryProfileExporter
from otel_asyncprof.formats.stack_sample import StackSample, stack_samples

SLOW_SECONDS = 0.3  # of a query: three times what makes a span slow
BURN_SECONDS = 0.1
MIN_TICKS, MAX_ROUNDS = 10, 60

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)  # before any instrumentation asks for it
tracer = provider.get_tracer("requests")
profiles = InMemoryProfileExporter()
profiler = Profiler(exporter=profiles, tracer_provider=provider, rate=100, cpu_budget=1.0)

Query = Callable[[], Awaitable[Any]]


def burn() -> None:
    """Works on the processor for a while."""
    end = time.thread_time() + BURN_SECONDS
    while time.thread_time() < end:
        pass


async def handle_request(query: Query) -> None:
    """A request that loads its orders in a task of its own."""
    with tracer.start_as_current_span("GET /orders", kind=SpanKind.SERVER):
        async with asyncio.TaskGroup() as group:
            group.create_task(load_orders(query))


async def load_orders(query: Query) -> None:
    """Awaits the query."""
    await query()


def _ticks() -> int:
    stats = profiler.stats()
    assert stats is not None
    return stats["ticks"]


async def repeat(action: Query) -> None:
    """Goes on until the profiler has looked often enough meanwhile, however slow the machine is."""
    begin = _ticks()
    for _ in range(MAX_ROUNDS):
        await action()
        if _ticks() - begin >= MIN_TICKS:
            return


async def request(query: Query) -> None:
    """Such requests."""
    await repeat(lambda: handle_request(query))


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs the program under the profiler and prints what came of it."""
    profiler.start_or_raise()
    asyncio.run(main())
    assert profiler.stop(timeout_millis=30_000)
    samples = stack_samples(profiles.get_finished_requests())
    json.dump({"samples": [*map(_sample, samples)], "spans": [*map(_span, spans.get_finished_spans())]}, sys.stdout)


def _sample(sample: StackSample) -> dict[str, Any]:
    return {
        "frames": [(frame.function, frame.file, frame.line) for frame in sample.frames],
        "thread": sample.thread_name,
        "state": sample.state,
        "span": f"{sample.span_id:016x}",
        "wall_ns": sample.wall_ns,
    }


def _span(span: ReadableSpan) -> dict[str, Any]:
    context, scope = span.context, span.instrumentation_scope
    assert context is not None
    assert scope is not None
    return {
        "id": f"{context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else None,
        "name": span.name,
        "scope": scope.name,
        "kind": span.kind.name,
        "attributes": dict(span.attributes or {}),
    }
