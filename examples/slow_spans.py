"""Asks a profile which code a span was waiting in: the join that a backend makes, in twenty lines."""

import asyncio

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof.testing import capture

trace.set_tracer_provider(TracerProvider())
tracer = trace.get_tracer(__name__)


async def query(seconds: float) -> int:
    with tracer.start_as_current_span("SELECT") as span:
        await asyncio.sleep(seconds)
        return span.get_span_context().span_id


async def report(seconds: float) -> int:
    return await query(seconds)


async def request() -> tuple[int, int]:
    async with asyncio.TaskGroup() as group:
        slow, slower = group.create_task(report(0.2)), group.create_task(query(0.4))
    return slow.result(), slower.result()


with capture() as profile:
    spans = asyncio.run(request())

for span_id in spans:
    samples = [sample for sample in profile.samples if sample.span_id == span_id]
    heaviest = max(samples, key=lambda sample: sample.wall_ns)
    print(" > ".join(heaviest.functions))
