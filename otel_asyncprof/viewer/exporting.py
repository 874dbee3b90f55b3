"""Stored spans and samples -> OTLP messages again, from which every other format is made."""

import base64
import json
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..formats.recording import Recording
from ..formats.stack_sample import Frame
from .flame import frames_of
from .reading import Reader, TraceData
from .tree_layout import Stack

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData, ProfilesDictionary
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

MAX_SAMPLES = 200_000  # rows of a trace
MAX_SAMPLES_OF_MANY = 20_000  # rows of one export that is of more than a trace: the newest
ROWS_AT_ONCE = 2000
_CPU_PERIOD_NS = 10_000_000
_COLUMNS = """id, trace_id, span_id, resource, stack, state, task, thread, thread_id, first_ns, last_ns, n, wall_ns,
    cpu_ns, wall, cpu"""


@dataclass(frozen=True)
class Rows:
    """Which stored samples are meant: of `sample p`, perhaps joined with others."""

    source: str
    where: str
    values: Mapping[str, Any]
    most: int  # the newest are taken

    def newest(self, connection: sqlite3.Connection) -> sqlite3.Cursor:
        """Rows of _COLUMNS; large values are not read of those that are left out."""
        return connection.execute(
            f"SELECT {_COLUMNS} FROM sample WHERE id IN (SELECT p.id FROM {self.source} WHERE {self.where} "
            f"ORDER BY p.id DESC LIMIT {self.most}) ORDER BY id DESC",
            self.values,
        )

    def are_more(self, connection: sqlite3.Connection) -> bool:
        """Whether some are left out."""
        count = f"SELECT COUNT(*) FROM (SELECT 1 FROM {self.source} WHERE {self.where} LIMIT {self.most + 1})"
        return bool(connection.execute(count, self.values).fetchone()[0] > self.most)


@dataclass(frozen=True)
class Limits:
    """What is left out of those rows, and of the traces beside them; None is nothing."""

    span: Callable[[bytes, int], bool] | None = None  # by id and resource: whether it is meant
    samples_by_span: bool = False  # samples too; otherwise the rows are right as they are
    begin_ns: int | None = None
    end_ns: int | None = None

    def times(self, row: Sequence[Any]) -> tuple["array[int]", list[tuple[int, int]]]:
        """Of a row of _COLUMNS: when it was seen on a CPU, and the looks at it with what each stands for."""
        wall, cpu = array("q", row[14]), array("q", row[15])
        looks = list(zip(wall[::2], wall[1::2], strict=True))
        if self.begin_ns is None and self.end_ns is None:
            return cpu, looks
        begin, end = self.begin_ns or 0, (1 << 62) if self.end_ns is None else self.end_ns
        return array("q", [time for time in cpu if begin < time <= end]), [
            (min(time, end), min(time, end) - max(time - value, begin))
            for time, value in looks
            if time - value < end and time > begin
        ]


def recording_of(
    connection: sqlite3.Connection, reader: Reader, rows: Rows, traces: Iterable[TraceData], limits: Limits
) -> Recording:
    """The newest samples, with some traces; each trace is let go before the next is asked for."""
    profiles = _profiles(connection, reader, rows.newest(connection), limits)
    return Recording(profiles, [_traces(connection, data, limits) for data in traces])


def _resource(connection: sqlite3.Connection, number: int) -> dict[str, Any]:
    row = connection.execute("SELECT content FROM resource WHERE id = ?", (number,)).fetchone()
    return dict(json.loads(row[0])) if row else {}


def _traces(connection: sqlite3.Connection, data: TraceData, limits: Limits) -> Any:
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    message = TracesData()
    details = dict(
        connection.execute("SELECT span_id, content FROM detail WHERE trace_id = ?", (data.trace_id,)).fetchall()
    )
    scopes: dict[tuple[int, str], Any] = {}
    for placed in data.spans:
        row = placed.row
        if limits.span is not None and not limits.span(row.span_id, row.resource):
            continue
        detail = json.loads(details.get(row.span_id, "{}"))
        key = (row.resource, detail.get("scope", ""))
        if key not in scopes:
            of_resource = message.resource_spans.add()
            add_attributes(of_resource.resource.attributes, _resource(connection, row.resource))
            scopes[key] = of_resource.scope_spans.add()
            scopes[key].scope.name, _, scopes[key].scope.version = key[1].partition(" ")
        span = scopes[key].spans.add(
            trace_id=data.trace_id,
            span_id=row.span_id,
            parent_span_id=row.parent_id or b"",
            name=row.name,
            kind=row.kind,
            start_time_unix_nano=row.start_ns,
            end_time_unix_nano=row.end_ns,
        )
        _add_detail(span, detail, row.is_error)
    return message


def _add_detail(span: "Span", detail: Mapping[str, Any], is_error: bool) -> None:
    add_attributes(span.attributes, detail.get("attributes", {}))
    span.trace_state = detail.get("trace_state", "")
    if is_error:
        span.status.code = span.status.STATUS_CODE_ERROR
    span.status.message = detail.get("status_message", "")
    for name, at, attributes in detail.get("events", []):
        add_attributes(span.events.add(name=name, time_unix_nano=at).attributes, attributes)
    for trace_id, span_id in detail.get("links", []):
        span.links.add(trace_id=bytes.fromhex(trace_id), span_id=bytes.fromhex(span_id))


def add_attributes(into: Any, attributes: Mapping[str, Any]) -> None:
    """Plain keys and values as OTLP has them."""
    for key, value in attributes.items():
        pair: KeyValue = into.add(key=key)
        _set(pair.value, value)


def _set(into: "AnyValue", value: Any) -> None:
    match value:
        case bool():
            into.bool_value = value
        case int():
            into.int_value = value
        case float():
            into.double_value = value
        case str():
            into.string_value = value
        case list():
            into.array_value.SetInParent()
            for item in value:
                _set(into.array_value.values.add(), item)
        case {"bytes": str(encoded)} if len(value) == 1:
            into.bytes_value = base64.b64decode(encoded)
        case dict():
            into.kvlist_value.SetInParent()
            add_attributes(into.kvlist_value.values, value)


def _profiles(
    connection: sqlite3.Connection, reader: Reader, rows: Iterable[Any], limits: Limits
) -> "list[ProfilesData]":
    """One message for each resource. Rows are taken in parts: all of them, with their times, would be too much."""
    messages: dict[int, _Message] = {}
    left = iter(rows)
    while part := list(islice(left, ROWS_AT_ONCE)):
        stacks = reader.stacks(connection, {row[4] for row in part})
        frames = reader.frames(connection, frames_of(stacks.values()))
        for row in part:
            resource = row[3]
            if limits.samples_by_span and limits.span is not None and not limits.span(row[2], resource):
                continue
            if resource not in messages:
                messages[resource] = _Message(_resource(connection, resource))
            messages[resource].add(row, limits.times(row), stacks, frames)
    return [messages[resource].message for resource in sorted(messages)]


class _Message:
    """The samples of one resource: a profile of CPU time and one of wall time, which share a dictionary."""

    def __init__(self, resource: Mapping[str, Any]) -> None:
        from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

        self.message = ProfilesData()
        of_resource = self.message.resource_profiles.add()
        add_attributes(of_resource.resource.attributes, resource)
        self._tables = tables = _Tables(self.message.dictionary)
        scope = of_resource.scope_profiles.add()
        self._cpu, self._wall = scope.profiles.add(), scope.profiles.add()
        for profile, kind, sample, unit in (
            (self._cpu, "cpu", "samples", "count"),
            (self._wall, "wall", "wall", "nanoseconds"),
        ):
            profile.period_type.type_strindex = tables.string(kind)
            profile.period_type.unit_strindex = tables.string("nanoseconds")
            profile.sample_type.type_strindex, profile.sample_type.unit_strindex = (
                tables.string(sample),
                tables.string(unit),
            )
        self._cpu.period = _CPU_PERIOD_NS

    def add(
        self,
        row: Sequence[Any],
        times: tuple["array[int]", list[tuple[int, int]]],
        stacks: Mapping[int, Stack],
        frames: Mapping[int, Frame],
    ) -> None:
        """A row of _COLUMNS, with what is meant of its times: where it has some, these are what is told."""
        (cpu_times, looks), (wall_bytes, cpu_bytes) = times, row[14:16]
        (_, trace_id, span_id, _, stack, state, task, thread, thread_id, first, last, _, wall_ns, cpu_ns) = row[:14]
        tables, cpu = self._tables, self._cpu
        place = {
            "stack_index": tables.stack(stack, stacks, frames),
            "link_index": tables.link(trace_id, span_id) if span_id else 0,
            "attribute_indices": tables.attributes(state, task, thread, thread_id),
        }
        for profile in (cpu, self._wall):
            begin = min(profile.time_unix_nano or first, first)
            end = max(profile.time_unix_nano + profile.duration_nano, last)
            profile.time_unix_nano, profile.duration_nano = begin, end - begin
        if cpu_ns and (cpu_times or not cpu_bytes):
            period = cpu.period
            if cpu_bytes:
                cpu.period = period = max(round(cpu_ns * cpu_times.itemsize / len(cpu_bytes)), 1)
            values = [] if cpu_times else [round(cpu_ns / period)]
            cpu.samples.add(**place, timestamps_unix_nano=cpu_times, values=values)
        if wall_ns and (looks or not wall_bytes):
            values = [value for _, value in looks] or [wall_ns]
            self._wall.samples.add(**place, timestamps_unix_nano=[time for time, _ in looks], values=values)


class _Tables:
    """The dictionary of a message; index 0 of each table is the zero value."""

    def __init__(self, dictionary: "ProfilesDictionary") -> None:
        self._to = dictionary
        self._known: dict[Any, int] = {("string", ""): 0}
        self._locations: dict[int, int] = {}  # by the numbers of stored frames
        self._stacks: dict[int, int] = {}  # by those of stored stacks
        dictionary.string_table.append("")
        for table in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(dictionary, f"{table}_table").add()

    def _number(self, key: Any, table: Any) -> tuple[int, bool]:
        if key in self._known:
            return self._known[key], False
        self._known[key] = len(table)
        return len(table), True

    def string(self, text: str) -> int:
        number, is_new = self._number(("string", text), self._to.string_table)
        if is_new:
            self._to.string_table.append(text)
        return number

    def attribute(self, key: str, value: str | int) -> int:
        number, is_new = self._number(("attribute", key, value), self._to.attribute_table)
        if is_new:
            _set(self._to.attribute_table.add(key_strindex=self.string(key)).value, value)
        return number

    def attributes(self, state: str, task: str, thread: str, thread_id: int) -> list[int]:
        named: dict[str, str | int] = {
            "thread.name": thread,
            "thread.id": thread_id,
            "asyncio.task.name": task,
            "asyncprof.state": state,
        }
        return [self.attribute(key, value) for key, value in named.items() if value]

    def link(self, trace_id: bytes, span_id: bytes) -> int:
        number, is_new = self._number(("link", trace_id, span_id), self._to.link_table)
        if is_new:
            self._to.link_table.add(trace_id=trace_id, span_id=span_id)
        return number

    def stack(self, number: int, stacks: Mapping[int, Stack], frames: Mapping[int, Frame]) -> int:
        found = self._stacks.get(number)
        if found is None:
            locations = self._locations
            for frame in stacks[number]:
                if frame not in locations:
                    locations[frame] = self._location(frames[frame])
            found = self._stacks[number] = len(self._to.stack_table)
            self._to.stack_table.add(location_indices=[locations[frame] for frame in reversed(stacks[number])])
        return found

    def _location(self, frame: Frame) -> int:
        function, is_new = self._number(
            ("function", frame.function, frame.file, frame.first_line), self._to.function_table
        )
        if is_new:
            self._to.function_table.add(
                name_strindex=self.string(frame.function),
                filename_strindex=self.string(frame.file),
                start_line=frame.first_line,
            )
        number, is_new = self._number(("location", function, frame.line), self._to.location_table)
        if is_new:
            location = self._to.location_table.add(attribute_indices=[self.attribute("profile.frame.type", "cpython")])
            location.lines.add(function_index=function, line=frame.line)
        return number
