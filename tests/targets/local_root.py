"""Nested spans, in one task and over a child task, below a remote parent and in a trace of their own."""

import asyncio

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from targets.support import expect_span, phase, tracer

REMOTE = NonRecordingSpan(SpanContext(0xABCDEF, 0x123456, is_remote=True, trace_flags=TraceFlags(1)))


async def own_trace() -> None:
    with tracer().start_as_current_span("root"):
        expect_span("own_trace")
        with tracer().start_as_current_span("inner"):
            await asyncio.sleep(0.3)


async def innermost() -> None:
    with tracer().start_as_current_span("innermost"):
        await asyncio.sleep(0.3)


async def below_remote() -> None:
    with trace.use_span(REMOTE), tracer().start_as_current_span("local root"):
        expect_span("innermost")
        with tracer().start_as_current_span("inner"):
            await asyncio.create_task(innermost())


async def main() -> None:
    with phase():
        await asyncio.gather(own_trace(), below_remote())
