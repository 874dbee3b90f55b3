"""OTLP traces as plain data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formats.process_profile import attributes_of

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

STATEMENT_ATTRIBUTES = ("db.query.text", "db.statement")  # the stable name, and the one before it
_SYSTEM_ATTRIBUTES = ("db.system.name", "db.system")
_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
MAX_PARENTS = 256  # how far up a trace is climbed


class SpanId(NamedTuple):
    """What a span is known by, in traces and in the links of a profile."""

    trace_id: int
    span_id: int

    @property
    def trace_hex(self) -> str:
        """The trace's id as it is written everywhere."""
        return format(self.trace_id, "032x")

    @property
    def span_hex(self) -> str:
        """The span's id as it is written everywhere."""
        return format(self.span_id, "016x")


@dataclass(frozen=True)
class Span:
    """One span as it was recorded."""

    id: SpanId
    parent: SpanId | None
    name: str
    kind: str
    start_ns: int
    end_ns: int
    is_error: bool
    service: str
    attributes: Mapping[str, Any]

    @property
    def duration_ns(self) -> int:
        """From its start to its end."""
        return max(self.end_ns - self.start_ns, 0)

    @property
    def statement(self) -> str | None:
        """The query on one line; its name when it is a query without a text; None when it is no query."""
        for name in STATEMENT_ATTRIBUTES:
            if text := self.attributes.get(name):
                return " ".join(str(text).split())
        return self.name if any(name in self.attributes for name in _SYSTEM_ATTRIBUTES) else None


def read_spans(traces: "Iterable[TracesData]") -> list[Span]:
    """All spans, in the order in which they were recorded."""
    return [
        _read_span(span, str(service))
        for data in traces
        for of_resource in data.resource_spans
        for service in [attributes_of(of_resource.resource.attributes).get("service.name", "")]
        for of_scope in of_resource.scope_spans
        for span in of_scope.spans
    ]


def _read_span(span: "SpanMessage", service: str) -> Span:
    trace_id = int.from_bytes(span.trace_id)
    parent = SpanId(trace_id, int.from_bytes(span.parent_span_id)) if any(span.parent_span_id) else None
    return Span(
        id=SpanId(trace_id, int.from_bytes(span.span_id)),
        parent=parent,
        name=span.name,
        kind=_KINDS[span.kind] if 0 <= span.kind < len(_KINDS) else "unspecified",
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        is_error=span.status.code == span.status.STATUS_CODE_ERROR,
        service=service,
        attributes=attributes_of(span.attributes),
    )


class Spans:
    """The spans of a recording, and how they stand to each other."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.by_id = {span.id: span for span in spans}
        self.children: dict[SpanId, list[Span]] = {}
        for span in self.by_id.values():
            if span.parent in self.by_id:
                self.children.setdefault(span.parent, []).append(span)

    def local_roots(self) -> list[Span]:
        """The spans whose parent is not in the recording: requests, jobs."""
        return [span for span in self.by_id.values() if span.parent not in self.by_id]

    def request_of(self, span: Span) -> Span:
        """The nearest span of kind server or consumer above a span, or the span's root."""
        current = span
        for _ in range(MAX_PARENTS):
            above = self.by_id.get(current.parent) if current.parent else None
            if above is None or current.kind in ("server", "consumer"):
                return current
            current = above
        return current

    def tree(self, root: Span) -> list[Span]:
        """A span and all below it."""
        found, waiting, seen = [], [root], {root.id}
        while waiting:
            span = waiting.pop()
            found.append(span)
            for child in self.children.get(span.id, ()):
                if child.id not in seen:
                    seen.add(child.id)
                    waiting.append(child)
        return found
