"""What our runtime context adds to the activation of one span: attach() and detach() through opentelemetry.context.

usage: python benchmarks/activation.py [--seconds 10]

Batches of 20 ms with OpenTelemetry's own runtime context and with ours take turns in one process, in a task of a loop.
Prints one row of a Markdown table: the Python, and for three cases the microseconds that ours adds, the median of the
differences between neighbouring batches and, in brackets, the difference of the fastest batches:

- a span that becomes current for the first time, as nearly every span does;
- a span that was current before;
- a context without a span, such as one with baggage.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import platform
import statistics
import time
from typing import Any

import opentelemetry.context as otel
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import _runtime_context

BATCH_SECONDS = 0.02
SPANS = 20  # made at once: few, since a span is hot in the cache when it is activated
CASES = ("first", "again", "no span")


def activate(contexts: list[Context]) -> int:
    """Nanoseconds that the contexts take, the loop included."""
    attach, detach = otel.attach, otel.detach
    begin = time.perf_counter_ns()
    for context in contexts:
        detach(attach(context))
    return time.perf_counter_ns() - begin


def measure(tracer: trace.Tracer, runtime: Any) -> dict[str, float]:
    """One batch: nanoseconds for one activation by case."""
    total, rounds = dict.fromkeys(CASES, 0), 0
    otel._RUNTIME_CONTEXT = runtime
    end = time.perf_counter() + BATCH_SECONDS
    while time.perf_counter() < end:
        spans = [tracer.start_span("request") for _ in range(SPANS)]
        contexts = [trace.set_span_in_context(span) for span in spans]
        total["first"] += activate(contexts)
        total["again"] += activate(contexts)
        total["no span"] += activate([otel.set_value("key", 1)] * SPANS)
        for span in spans:
            span.end()
        rounds += 1
    return {case: total[case] / rounds / SPANS for case in CASES}


async def compare(seconds: float) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Pairs of batches: with OpenTelemetry's own runtime context, and with ours."""
    tracer = TracerProvider().get_tracer("benchmark")
    stock: Any = otel._RUNTIME_CONTEXT
    _runtime_context.install()
    ours: Any = otel._RUNTIME_CONTEXT
    gc.disable()
    measure(tracer, stock), measure(tracer, ours)
    pairs = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pairs.append((measure(tracer, stock), measure(tracer, ours)))
    gc.enable()
    otel._RUNTIME_CONTEXT = ours
    _runtime_context.uninstall()
    return pairs


def main() -> None:
    """Prints the row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    pairs = asyncio.run(compare(parser.parse_args().seconds))
    cells = []
    for case in CASES:
        median = statistics.median(ours[case] - stock[case] for stock, ours in pairs)
        fastest = min(ours[case] for _, ours in pairs) - min(stock[case] for stock, _ in pairs)
        cells.append(f"{median / 1000:+.2f} ({fastest / 1000:+.2f})")
    print(f"| {platform.python_version()} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
