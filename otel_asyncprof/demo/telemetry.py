"""OTLP traces and profiles as plain data: what the report joins."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesDictionary
from opentelemetry.proto.profiles.v1development.profiles_pb2 import Stack as ProfileStack
from opentelemetry.proto.trace.v1.trace_pb2 import Span

STATEMENT_ATTRIBUTES = ("db.query.text", "db.statement")  # the stable name, and the one before it


class SpanId(NamedTuple):
    """What a span is known by, in traces and in the links of a profile."""

    trace_id: bytes
    span_id: bytes


@dataclass(frozen=True)
class ReceivedSpan:
    """One span as it arrived."""

    id: SpanId
    parent_id: bytes
    name: str
    is_server: bool
    is_client: bool
    statement: str | None
    duration_ms: float


@dataclass(frozen=True)
class Frame:
    """One frame of a stack."""

    function: str
    file: str
    line: int


Stack = tuple[Frame, ...]  # root first


@dataclass(frozen=True)
class ReceivedSample:
    """One sample of one profile; wall_ns is 0 in a profile that counts CPU periods."""

    stack: Stack
    link: SpanId | None
    wall_ns: int


def read_spans(requests: Iterable[ExportTraceServiceRequest]) -> list[ReceivedSpan]:
    """All spans of all requests."""
    return [
        _read_span(span)
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _read_span(span: Span) -> ReceivedSpan:
    attributes = {attribute.key: attribute.value.string_value for attribute in span.attributes}
    return ReceivedSpan(
        id=SpanId(span.trace_id, span.span_id),
        parent_id=span.parent_span_id,
        name=span.name,
        is_server=span.kind == Span.SPAN_KIND_SERVER,
        is_client=span.kind == Span.SPAN_KIND_CLIENT,
        statement=next((attributes[key] for key in STATEMENT_ATTRIBUTES if key in attributes), None),
        duration_ms=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e6,
    )


def read_samples(requests: Iterable[ExportProfilesServiceRequest]) -> list[ReceivedSample]:
    """All samples of all profiles of all requests."""
    return [sample for request in requests for sample in _read_request(request)]


def _read_request(request: ExportProfilesServiceRequest) -> Iterator[ReceivedSample]:
    dictionary = request.dictionary
    stacks = [_read_stack(dictionary, stack) for stack in dictionary.stack_table]
    links = [SpanId(link.trace_id, link.span_id) if any(link.span_id) else None for link in dictionary.link_table]
    for resource in request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                is_wall = dictionary.string_table[profile.sample_type.type_strindex] == "wall"
                for sample in profile.samples:
                    yield ReceivedSample(
                        stack=stacks[sample.stack_index],
                        link=links[sample.link_index],
                        wall_ns=sum(sample.values) if is_wall else 0,
                    )


def _read_stack(dictionary: ProfilesDictionary, stack: ProfileStack) -> Stack:
    frames = []
    for index in reversed(stack.location_indices):
        for line in dictionary.location_table[index].lines:
            function = dictionary.function_table[line.function_index]
            frames.append(
                Frame(
                    function=dictionary.string_table[function.name_strindex],
                    file=dictionary.string_table[function.filename_strindex],
                    line=line.line,
                )
            )
    return tuple(frames)
