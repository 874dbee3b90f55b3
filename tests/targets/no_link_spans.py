"""Spans that are current but must not be linked: remote, invalid and unsampled ones; a local one beside them."""

import asyncio

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from targets.support import REPORT, expect_span, name_me, tracer

REMOTE = NonRecordingSpan(SpanContext(0xABCDEF, 0x123456, is_remote=True, trace_flags=TraceFlags(1)))


async def holds(name: str, span: trace.Span) -> None:
    name_me(name)
    with trace.use_span(span):
        await asyncio.sleep(60)


async def below_remote() -> None:
    name_me("below remote")
    with trace.use_span(REMOTE), tracer().start_as_current_span("local"):
        expect_span("below_remote")
        await asyncio.sleep(60)


async def main() -> None:
    unsampled = TracerProvider(sampler=ALWAYS_OFF).get_tracer("off").start_span("unsampled")
    REPORT["unsampled"] = unsampled.get_span_context().span_id
    await asyncio.gather(
        holds("remote", REMOTE), holds("invalid", trace.INVALID_SPAN), holds("unsampled", unsampled), below_remote()
    )
