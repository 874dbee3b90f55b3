"""Joins traces and profiles: which code asked for a slow query. Pure: data in, data out."""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from otel_asyncprof.demo.telemetry import ReceivedSpan, SpanId
from otel_asyncprof.formats.stack_sample import Frame, StackSample

Stack = tuple[Frame, ...]  # root first

SLOW_QUERY_MS = 50.0
MAX_QUERIES = 12
MAX_PARENTS = 64  # how far up a trace is climbed


@dataclass(frozen=True)
class SlowQuery:
    """A slow query, its request, and the stack that the profile has for it: empty when no sample names its span."""

    statement: str
    duration_ms: float
    id: SpanId
    request_span: str | None
    caller: Frame | None
    stack: Stack

    @property
    def led_back(self) -> bool:
        """Whether both the request and the calling code are known."""
        return self.request_span is not None and self.caller is not None


@dataclass(frozen=True)
class Report:
    """What arrived, and its slow queries, slowest first."""

    traces: int
    spans: int
    samples: int
    linked_share: float
    queries: tuple[SlowQuery, ...]


def make_report(spans: Iterable[ReceivedSpan], samples: Iterable[StackSample], own_file: str) -> Report:
    """Leads every slow query back to its request by parent ids and to its caller by the links of the samples."""
    spans_by_id = {span.id: span for span in spans}
    samples = list(samples)
    stacks: defaultdict[SpanId, Counter[Stack]] = defaultdict(Counter)
    linked = 0
    for sample in samples:
        link = SpanId(sample.trace_id, sample.span_id)
        if link in spans_by_id:
            linked += 1
            stacks[link][sample.frames] += sample.wall_ns
    queries = [
        _lead_back(span, spans_by_id, stacks, own_file)
        for span in spans_by_id.values()
        if span.is_client and span.statement is not None and span.parent and span.duration_ms >= SLOW_QUERY_MS
    ]
    return Report(
        traces=len({span.trace_id for span in spans_by_id}),
        spans=len(spans_by_id),
        samples=len(samples),
        linked_share=linked / len(samples) if samples else 0.0,
        queries=tuple(_slowest_of_each(queries)[:MAX_QUERIES]),
    )


def _lead_back(
    span: ReceivedSpan,
    spans: Mapping[SpanId, ReceivedSpan],
    stacks: Mapping[SpanId, Counter[Stack]],
    own_file: str,
) -> SlowQuery:
    request = _request_of(span, spans)
    seen = stacks.get(span.id)
    stack = max(seen, key=lambda candidate: seen[candidate]) if seen else ()
    return SlowQuery(
        statement=" ".join((span.statement or "").split()),
        duration_ms=span.duration_ms,
        id=span.id,
        request_span=request.name if request else None,
        caller=next((frame for frame in reversed(stack) if frame.file == own_file), None),
        stack=stack,
    )


def _request_of(span: ReceivedSpan, spans: Mapping[SpanId, ReceivedSpan]) -> ReceivedSpan | None:
    current: ReceivedSpan | None = span
    for _ in range(MAX_PARENTS):
        if current is None or current.is_server:
            return current
        current = spans.get(current.parent) if current.parent else None
    return None


def _slowest_of_each(queries: Iterable[SlowQuery]) -> list[SlowQuery]:
    """The slowest query of each statement, request and caller: one statement called from two places is two.

    A query that is in no sample is left out where the same one of such a request is led back.
    """
    queries = sorted(queries, key=lambda query: query.duration_ms, reverse=True)
    led_back = {(query.statement, query.request_span) for query in queries if query.led_back}
    slowest: dict[tuple[str, str | None, str | None], SlowQuery] = {}
    for query in queries:
        if not query.led_back and (query.statement, query.request_span) in led_back:
            continue
        function = query.caller.function if query.caller else None
        slowest.setdefault((query.statement, query.request_span, function), query)
    return list(slowest.values())


def to_json(report: Report) -> dict[str, Any]:
    """The report as `otel-asyncprof demo --json` prints it."""
    return {
        "traces": report.traces,
        "spans": report.spans,
        "samples": report.samples,
        "linked_share": round(report.linked_share, 4),
        "queries": [
            {
                "statement": query.statement,
                "duration_ms": round(query.duration_ms, 3),
                "trace_id": format(query.id.trace_id, "032x"),
                "span_id": format(query.id.span_id, "016x"),
                "request_span": query.request_span,
                "caller": str(query.caller) if query.caller else None,
                "stack": [_frame_text(frame) for frame in query.stack],
            }
            for query in report.queries
        ],
    }


def to_text(report: Report) -> str:
    """The report for people; frames of the service's own code are marked."""
    lines = [
        f"{report.traces} traces with {report.spans} spans, {report.samples} samples, "
        f"{report.linked_share:.0%} of them linked to one of these spans",
    ]
    for query in report.queries:
        lines += [
            "",
            f"{query.duration_ms:8.1f} ms  {query.statement}",
            f"   request  {query.request_span or 'unknown: its span did not arrive'}"
            f"   (trace {query.id.trace_id:032x}, span {query.id.span_id:016x})",
            f"    caller  {str(query.caller) if query.caller else 'unknown: no sample has this span'}",
        ]
        for number, frame in enumerate(query.stack):
            mark = ">" if query.caller and frame.file == query.caller.file else " "
            lines.append(f"{'     stack' if number == 0 else '          '} {mark}{_frame_text(_shortened(frame))}")
    return "\n".join(lines)


def _frame_text(frame: Frame) -> str:
    return f"{frame.function} ({frame.file}:{frame.line})"


def _shortened(frame: Frame) -> Frame:
    """The frame with its file as it is imported: without the folder in which Python found it."""
    folders = [folder for folder in sys.path if folder and frame.file.startswith(folder + os.sep)]
    return frame._replace(file=frame.file[len(max(folders, key=len)) + 1 :]) if folders else frame
