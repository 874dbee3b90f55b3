"""A span that is current for a moment only, over and over: one function is called within it, another outside."""

import time

from opentelemetry import context, trace
from targets.support import REPORT, phase, tracer

SECONDS = 2.0
LENGTH = 60


def inside() -> None:
    for _ in range(LENGTH):
        pass


def outside() -> None:
    for _ in range(LENGTH):
        pass


async def main() -> None:
    with phase():
        span = tracer().start_span("short")
        REPORT["span"] = span.get_span_context().span_id
        with_span = trace.set_span_in_context(span)
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            outside()
            token = context.attach(with_span)
            inside()
            context.detach(token)
            outside()
