"""OTLP messages -> what is stored. What does not hold together is left out and counted."""

from __future__ import annotations

import base64
import json
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..analysis.spans import STATEMENT_ATTRIBUTES
from ..formats.process_profile import attributes_of
from ..formats.stack_sample import Frame, Identity, Reader
from .looks import RUNNING
from .statements import MAX_CHARACTERS, normalised

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import Profile, ProfilesData
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import Sample as SampleMessage
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

MAX_NAME = 1024  # characters of a span's, a task's or a thread's name
MAX_FRAMES = 1024  # of one stack
MAX_SHOWN = 20_000  # characters of one attribute that the page gets; exports have all
MAX_TIME_NS = 1 << 62  # a signed 64-bit number holds sums of two
CLIENT = 3
_SYSTEMS = ("db.system.name", "db.system")
_CALLER = ("code.function.name", "code.file.path", "code.line.number")
_TRACE_BYTES, _SPAN_BYTES = 16, 8


@dataclass(slots=True)
class NewSpan:
    """A span on its way into the store."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes | None
    resource: str  # its attributes, as JSON
    service: str
    name: str
    kind: int
    start_ns: int
    end_ns: int
    is_error: bool
    statement: str | None  # normalised
    system: str
    caller: Frame | None
    details: str  # all else, as JSON


@dataclass(slots=True)
class NewSample:
    """A sample on its way into the store."""

    trace_id: bytes | None
    span_id: bytes | None
    resource: str
    service: str
    frames: tuple[Frame, ...]
    state: str
    task: str
    thread: str
    thread_id: int
    first_ns: int
    last_ns: int
    n: int
    wall_ns: int
    cpu_ns: int
    wall_at: array[int]  # time, weight, …
    cpu_at: array[int]


@dataclass
class Batch:
    """What one message holds."""

    spans: list[NewSpan] = field(default_factory=list)
    samples: list[NewSample] = field(default_factory=list)
    rejected: int = 0  # spans, or samples
    rejected_profiles: int = 0  # of which nothing was kept
    reason: str = ""

    def reject(self, reason: str, n: int = 1) -> None:
        """Counts what is left out; the first reason is told."""
        self.rejected += n
        self.reason = self.reason or reason

    @property
    def size(self) -> int:
        """How much of it there is: spans, and observations of samples."""
        return len(self.spans) + sum(sample.n for sample in self.samples)


def decoded_traces(data: TracesData) -> Batch:
    """The spans of a message."""
    batch = Batch()
    for of_resource in data.resource_spans:
        resource, service = _resource(of_resource.resource)
        for of_scope in of_resource.scope_spans:
            scope = " ".join(part for part in (of_scope.scope.name, of_scope.scope.version) if part)
            for message in of_scope.spans:
                if reason := _fault(message):
                    batch.reject(reason)
                else:
                    batch.spans.append(_span(message, resource, service, scope))
    return batch


def _fault(message: SpanMessage) -> str:
    if len(message.trace_id) != _TRACE_BYTES or not any(message.trace_id):
        return "a span has no valid trace id"
    if len(message.span_id) != _SPAN_BYTES or not any(message.span_id):
        return "a span has no valid span id"
    if not 0 < message.start_time_unix_nano < MAX_TIME_NS or not 0 < message.end_time_unix_nano < MAX_TIME_NS:
        return "a span has no valid start or end"
    return ""


def _resource(message: Resource, strings: Sequence[str] = ()) -> tuple[str, str]:
    attributes = attributes_of(message.attributes, strings)
    return to_json(attributes), str(attributes.get("service.name") or "")[:MAX_NAME]


def _span(message: SpanMessage, resource: str, service: str, scope: str) -> NewSpan:
    attributes = attributes_of(message.attributes)
    statement, system = statement_in(attributes, message.name)
    details = {
        "attributes": attributes,
        "scope": scope,
        "trace_state": message.trace_state,
        "status_message": message.status.message,
        "events": [[event.name, event.time_unix_nano, attributes_of(event.attributes)] for event in message.events],
        "links": [[link.trace_id.hex(), link.span_id.hex()] for link in message.links],
    }
    parent = message.parent_span_id
    return NewSpan(
        trace_id=message.trace_id,
        span_id=message.span_id,
        parent_id=parent if len(parent) == _SPAN_BYTES and any(parent) else None,
        resource=resource,
        service=service,
        name=message.name[:MAX_NAME],
        kind=message.kind if 0 <= message.kind <= 5 else 0,
        start_ns=message.start_time_unix_nano,
        end_ns=message.end_time_unix_nano,
        is_error=message.status.code == message.status.STATUS_CODE_ERROR,
        statement=statement,
        system=system,
        caller=_caller(attributes),
        details=to_json({key: value for key, value in details.items() if value}),
    )


def statement_in(attributes: Mapping[str, Any], name: str) -> tuple[str | None, str]:
    """The normalised statement and the system of the database; the span's name where a query has no text."""
    system = next((str(attributes[key]) for key in _SYSTEMS if attributes.get(key)), "")
    for key in STATEMENT_ATTRIBUTES:
        if text := attributes.get(key):
            return normalised(str(text), system), system
    return (normalised(name, "") if system else None), system


def example_in(attributes: Mapping[str, Any], name: str) -> str:
    """The statement as it was sent."""
    return str(next((attributes[key] for key in STATEMENT_ATTRIBUTES if attributes.get(key)), name))[:MAX_CHARACTERS]


def _caller(attributes: Mapping[str, Any]) -> Frame | None:
    function, file, line = (attributes.get(key) for key in _CALLER)
    if isinstance(function, str) and isinstance(file, str) and isinstance(line, int) and 0 <= line < 1 << 31:
        return Frame(function, file, line, 0)
    return None


def decoded_profiles(data: ProfilesData) -> Batch:
    """The samples of a message; CPU and wall profile together."""
    batch = Batch()
    reader = Reader(data.dictionary)
    for of_resource in data.resource_profiles:
        resource, service = _resource(of_resource.resource, data.dictionary.string_table)
        known: dict[tuple[int, ...], NewSample] = {}
        for of_scope in of_resource.scope_profiles:
            for profile in of_scope.profiles:
                before = batch.rejected
                _add_profile(batch, profile, reader, known, resource, service)
                batch.rejected_profiles += 0 < len(profile.samples) == batch.rejected - before
        batch.samples += known.values()
    return batch


def _add_profile(
    batch: Batch,
    profile: Profile,
    reader: Reader,
    known: dict[tuple[int, ...], NewSample],
    resource: str,
    service: str,
) -> None:
    try:
        is_cpu = reader.is_cpu(profile)
    except IndexError:
        batch.reject("a profile refers to a string that is not there", len(profile.samples))
        return
    begin, end = profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano
    if end >= MAX_TIME_NS or profile.period >= MAX_TIME_NS:
        batch.reject("a profile has no valid time", len(profile.samples))
        return
    for message in profile.samples:
        key = (message.stack_index, message.link_index, *message.attribute_indices)
        sample = known.get(key)
        try:
            if sample is None:
                sample = known[key] = _sample(reader.identity(message), resource, service)
            _add(sample, message, is_cpu, max(profile.period, 0), begin, end)
        except (IndexError, OverflowError, ValueError) as error:
            known.pop(key, None)
            batch.reject(f"a sample does not hold together: {error}")


def _sample(identity: Identity, resource: str, service: str) -> NewSample:
    attributes = dict(identity.attributes)
    if len(identity.frames) > MAX_FRAMES:
        raise ValueError(f"its stack has {len(identity.frames)} frames")
    has_link = bool(identity.trace_id and identity.span_id)
    thread_id = attributes.get("thread.id", 0)
    return NewSample(
        trace_id=identity.trace_id.to_bytes(_TRACE_BYTES) if has_link else None,
        span_id=identity.span_id.to_bytes(_SPAN_BYTES) if has_link else None,
        resource=resource,
        service=service,
        frames=identity.frames,
        state=str(attributes.get("asyncprof.state") or RUNNING),
        task=str(attributes.get("asyncio.task.name") or "")[:MAX_NAME],
        thread=str(attributes.get("thread.name") or "")[:MAX_NAME],
        thread_id=thread_id if isinstance(thread_id, int) else 0,
        first_ns=0,
        last_ns=0,
        n=0,
        wall_ns=0,
        cpu_ns=0,
        wall_at=array("q"),
        cpu_at=array("q"),
    )


def _add(sample: NewSample, message: SampleMessage, is_cpu: bool, period: int, begin: int, end: int) -> None:
    times, values = message.timestamps_unix_nano, message.values
    if (times and not 0 < min(times) <= max(times) < MAX_TIME_NS) or (
        values and not 0 <= min(values) <= max(values) < MAX_TIME_NS
    ):
        raise ValueError("a time or a value is out of range")
    if is_cpu:
        sample.cpu_at.extend(times)
        sample.cpu_ns += period * (sum(values) or len(times))
    else:
        if times and len(times) != len(values):
            raise ValueError("it has other numbers of times and values")
        for time, value in zip(times, values, strict=False):
            sample.wall_at.append(time)
            sample.wall_at.append(value)
        sample.wall_ns += sum(values)
    sample.n = max(len(sample.wall_at) // 2, len(sample.cpu_at), 1)
    seen = times or (begin, end)
    sample.first_ns = min(sample.first_ns or seen[0], *seen)
    sample.last_ns = max(sample.last_ns, *seen)
    if sample.wall_ns >= MAX_TIME_NS or sample.cpu_ns >= MAX_TIME_NS:
        raise ValueError("its sum is out of range")


def to_json(value: Any) -> str:
    """Compact JSON of attributes, with names for what JSON has none for."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def browser_safe(value: Any) -> Any:
    """The same for a browser, whose numbers are exact up to 2^53 only, without the ends of very long texts."""
    if isinstance(value, dict):
        return {key: browser_safe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [browser_safe(item) for item in value]
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return f"{value[:MAX_SHOWN]} … {len(value) - MAX_SHOWN} more characters"
    return str(value) if isinstance(value, int) and abs(value) > 1 << 53 else value
