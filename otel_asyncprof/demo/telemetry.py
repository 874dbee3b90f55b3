"""OTLP traces as plain data: the half of the report that is not a profile."""

from collections.abc import Iterable
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otel_asyncprof.analysis.spans import STATEMENT_ATTRIBUTES, SpanId

__all__ = ["ReceivedSpan", "SpanId", "read_spans"]


@dataclass(frozen=True)
class ReceivedSpan:
    """One span as it arrived."""

    id: SpanId
    parent: SpanId | None
    name: str
    is_server: bool
    is_client: bool
    statement: str | None
    duration_ms: float


def read_spans(requests: Iterable[bytes]) -> list[ReceivedSpan]:
    """All spans of all ExportTraceServiceRequest messages."""
    return [
        _read_span(span)
        for request in requests
        for resource in ExportTraceServiceRequest.FromString(request).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _read_span(span: Span) -> ReceivedSpan:
    attributes = {attribute.key: attribute.value.string_value for attribute in span.attributes}
    trace_id = int.from_bytes(span.trace_id)
    return ReceivedSpan(
        id=SpanId(trace_id, int.from_bytes(span.span_id)),
        parent=SpanId(trace_id, int.from_bytes(span.parent_span_id)) if span.parent_span_id else None,
        name=span.name,
        is_server=span.kind == Span.SPAN_KIND_SERVER,
        is_client=span.kind == Span.SPAN_KIND_CLIENT,
        statement=next((attributes[key] for key in STATEMENT_ATTRIBUTES if key in attributes), None),
        duration_ms=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e6,
    )
