"""The conformance checker accepts a conformant request and catches a violation of each of its rules."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import conformance
import pytest
from conformance import check_request
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.profiles.v1development.profiles_pb2 import (
    Function,
    KeyValueAndUnit,
    Line,
    Link,
    Location,
    Mapping,
    Profile,
    ProfilesDictionary,
    ResourceProfiles,
    Sample,
    ScopeProfiles,
    Stack,
    ValueType,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

TIME, DURATION, PERIOD = 1_000, 500, 10
STRINGS = "|main|app.py|query|db.py|profile.frame.type|thread.name|asyncprof.state|samples|count|cpu|nanoseconds|wall"
S = {text: index for index, text in enumerate(STRINGS.split("|"))}


def attribute(key: str, value: str) -> KeyValueAndUnit:
    """A string attribute."""
    return KeyValueAndUnit(key_strindex=S[key], value=AnyValue(string_value=value))


def conformant_request() -> ExportProfilesServiceRequest:
    """Two profiles of two stacks, one with a link."""
    dictionary = ProfilesDictionary(
        mapping_table=[Mapping()],
        location_table=[
            Location(),
            Location(lines=[Line(function_index=1, line=3)], attribute_indices=[1]),
            Location(lines=[Line(function_index=2, line=7)], attribute_indices=[1]),
        ],
        function_table=[
            Function(),
            Function(name_strindex=S["main"], filename_strindex=S["app.py"], start_line=1),
            Function(name_strindex=S["query"], filename_strindex=S["db.py"], start_line=5),
        ],
        link_table=[Link(), Link(trace_id=bytes(range(16)), span_id=bytes(range(8)))],
        string_table=list(S),
        attribute_table=[
            KeyValueAndUnit(),
            attribute("profile.frame.type", "cpython"),
            attribute("thread.name", "MainThread"),
            attribute("asyncprof.state", "running"),
            attribute("asyncprof.state", "waiting"),
        ],
        stack_table=[Stack(), Stack(location_indices=[1]), Stack(location_indices=[2, 1])],
    )
    cpu = Profile(
        sample_type=ValueType(type_strindex=S["samples"], unit_strindex=S["count"]),
        samples=[Sample(stack_index=1, attribute_indices=[2, 3], timestamps_unix_nano=[TIME, TIME + 10])],
        time_unix_nano=TIME,
        duration_nano=DURATION,
        period_type=ValueType(type_strindex=S["cpu"], unit_strindex=S["nanoseconds"]),
        period=PERIOD,
        profile_id=b"c" * 16,
    )
    wall_type = ValueType(type_strindex=S["wall"], unit_strindex=S["nanoseconds"])
    wall = Profile(
        sample_type=wall_type,
        samples=[
            Sample(stack_index=1, attribute_indices=[2, 3], values=[20]),
            Sample(stack_index=2, attribute_indices=[2, 4], link_index=1, values=[300]),
        ],
        time_unix_nano=TIME,
        duration_nano=DURATION,
        period_type=wall_type,
        period=PERIOD,
        profile_id=b"w" * 16,
    )
    scope = ScopeProfiles(
        scope=InstrumentationScope(name="otel_asyncprof", version="1"),
        profiles=[cpu, wall],
        schema_url="https://opentelemetry.io/schemas/1.44.0",
    )
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])
    return ExportProfilesServiceRequest(
        resource_profiles=[ResourceProfiles(resource=resource, scope_profiles=[scope])], dictionary=dictionary
    )


class Parts:
    """The parts of a request, by short names."""

    def __init__(self) -> None:
        self.request = conformant_request()
        self.resource = self.request.resource_profiles[0]
        self.scope = self.resource.scope_profiles[0]
        self.cpu, self.wall = self.scope.profiles
        self.dictionary = self.request.dictionary
        self.location = self.dictionary.location_table[1]
        self.line = self.location.lines[0]
        self.function = self.dictionary.function_table[1]
        self.link = self.dictionary.link_table[1]
        self.attributes = self.dictionary.attribute_table

    def string(self, text: str) -> int:
        """Adds a string."""
        self.dictionary.string_table.append(text)
        return len(self.dictionary.string_table) - 1

    def sample_attribute(self, key: str, value: AnyValue) -> None:
        """Adds an attribute to the CPU sample."""
        self.attributes.append(KeyValueAndUnit(key_strindex=self.string(key), value=value))
        self.cpu.samples[0].attribute_indices.append(len(self.attributes) - 1)

    def make_timeline(self) -> Parts:
        """Gives the wall samples timestamps."""
        for sample in self.wall.samples:
            sample.timestamps_unix_nano.append(TIME + 5)
        return self

    def clear_both(self, field: Literal["time_unix_nano", "duration_nano"]) -> None:
        """Clears a field of both profiles."""
        self.cpu.ClearField(field)
        self.wall.ClearField(field)


Plant = Callable[[Parts], object]
VIOLATIONS: list[tuple[str, Plant]] = [
    ("unknown field", lambda p: p.line.MergeFromString(b"\x98\x06\x01")),
    ("AnyValue refers to the string table", lambda p: setattr(p.attributes[2].value, "string_value_strindex", 1)),
    ("KeyValue refers to the string table", lambda p: setattr(p.resource.resource.attributes[0], "key_strindex", 1)),
    ("not exactly one ResourceProfiles", lambda p: p.request.resource_profiles.add()),
    ("no resource", lambda p: p.resource.ClearField("resource")),
    ("a resource attribute twice", lambda p: p.resource.resource.attributes.add(key="service.name")),
    ("not exactly one ScopeProfiles", lambda p: p.resource.scope_profiles.add()),
    ("scope is 'other'", lambda p: setattr(p.scope.scope, "name", "other")),
    ("scope without a version", lambda p: p.scope.scope.ClearField("version")),
    ("scope without a schema URL", lambda p: p.scope.ClearField("schema_url")),
    ("not one or two profiles", lambda p: p.scope.ClearField("profiles")),
    ("mapping_table is not exactly", lambda p: p.dictionary.mapping_table.add(memory_start=1)),
    ("link_table is empty", lambda p: p.dictionary.ClearField("link_table")),
    (r"function_table\[0\] is not the zero", lambda p: setattr(p.dictionary.function_table[0], "start_line", 1)),
    (r"string_table\[0\] is not the zero", lambda p: p.dictionary.string_table.__setitem__(0, "x")),
    (r"link_table\[0\] is not the zero", lambda p: setattr(p.dictionary.link_table[0], "trace_id", bytes(16))),
    ("string_table holds an entry twice", lambda p: p.string("main")),
    ("stack_table holds an entry twice", lambda p: p.dictionary.stack_table.add(location_indices=[2, 1])),
    ("location_table holds an entry twice", lambda p: p.dictionary.location_table.append(p.location)),
    ("stack_table holds an entry twice", lambda p: p.dictionary.stack_table.add()),
    ("location with a mapping", lambda p: setattr(p.location, "mapping_index", 1)),
    ("location with an address", lambda p: setattr(p.location, "address", 1)),
    ("location without exactly one line", lambda p: p.location.lines.add(function_index=1)),
    ("line without a function", lambda p: setattr(p.line, "function_index", 0)),
    ("line without a function", lambda p: setattr(p.line, "function_index", 3)),
    ("line number out of range", lambda p: setattr(p.line, "line", -1)),
    ("line with a column", lambda p: setattr(p.line, "column", 1)),
    ("location without exactly one attribute", lambda p: p.location.ClearField("attribute_indices")),
    ("location attribute out of range", lambda p: p.location.attribute_indices.__setitem__(0, 99)),
    ("location attribute is not the frame type", lambda p: p.location.attribute_indices.__setitem__(0, 2)),
    ("frame type is not cpython", lambda p: setattr(p.attributes[1].value, "string_value", "native")),
    ("function without a name", lambda p: setattr(p.function, "name_strindex", 0)),
    ("function with a system name", lambda p: setattr(p.function, "system_name_strindex", 1)),
    ("file name out of range", lambda p: setattr(p.function, "filename_strindex", 99)),
    ("function 'main' without a file name", lambda p: setattr(p.function, "filename_strindex", 0)),
    ("start line out of range", lambda p: setattr(p.function, "start_line", -1)),
    ("stack too deep", lambda p: p.dictionary.stack_table[1].location_indices.extend([1] * 512)),
    ("stack location out of range", lambda p: p.dictionary.stack_table[1].location_indices.append(0)),
    ("stack location out of range", lambda p: p.dictionary.stack_table[1].location_indices.append(3)),
    ("trace id has not 16 bytes", lambda p: setattr(p.link, "trace_id", b"x" * 15)),
    ("trace id is zero", lambda p: setattr(p.link, "trace_id", bytes(16))),
    ("span id has not 8 bytes", lambda p: setattr(p.link, "span_id", b"x" * 16)),
    ("span id is zero", lambda p: setattr(p.link, "span_id", bytes(8))),
    ("attribute without a key", lambda p: setattr(p.attributes[2], "key_strindex", 0)),
    ("has other characters", lambda p: p.sample_attribute("thread-name", AnyValue(string_value="x"))),
    ("code.* belongs to no profile", lambda p: p.sample_attribute("code.line.number", AnyValue(int_value=1))),
    ("attribute with a unit", lambda p: setattr(p.attributes[2], "unit_strindex", S["count"])),
    ("unknown attribute 'thread.color'", lambda p: p.sample_attribute("thread.color", AnyValue(string_value="x"))),
    ("'thread.id' is a string_value", lambda p: p.sample_attribute("thread.id", AnyValue(string_value="5"))),
    ("'thread.name' is a None", lambda p: p.attributes[2].ClearField("value")),
    ("present but empty", lambda p: setattr(p.attributes[2].value, "string_value", "")),
    ("unknown state 'idle'", lambda p: setattr(p.attributes[3].value, "string_value", "idle")),
    ("sample or period type out of range", lambda p: p.wall.ClearField("period_type")),
    ("profile types are", lambda p: setattr(p.cpu.sample_type, "unit_strindex", S["nanoseconds"])),
    ("profile types are", lambda p: p.scope.profiles.reverse()),
    ("profile types are", lambda p: p.cpu.CopyFrom(p.wall)),
    ("intervals differ", lambda p: setattr(p.wall, "duration_nano", DURATION + 1)),
    ("two profiles with one id", lambda p: setattr(p.wall, "profile_id", p.cpu.profile_id)),
    ("profile id has not 16 bytes", lambda p: p.cpu.ClearField("profile_id")),
    ("profile id is zero", lambda p: setattr(p.cpu, "profile_id", bytes(16))),
    ("profile without a time", lambda p: p.clear_both("time_unix_nano")),
    ("profile without a duration", lambda p: p.clear_both("duration_nano")),
    ("profile without a period", lambda p: p.wall.ClearField("period")),
    ("profile with attributes", lambda p: p.cpu.attribute_indices.append(2)),
    ("profile with dropped attributes", lambda p: setattr(p.cpu, "dropped_attributes_count", 1)),
    ("the format of an original payload", lambda p: setattr(p.cpu, "original_payload_format", "pprof")),
    ("profile with an original payload", lambda p: setattr(p.cpu, "original_payload", b"x")),
    ("profile without samples", lambda p: p.cpu.ClearField("samples")),
    ("profile with too many samples", lambda p: p.cpu.samples.extend([Sample(stack_index=1)] * 15_000)),
    ("stack index out of range", lambda p: setattr(p.cpu.samples[0], "stack_index", 3)),
    ("link index out of range", lambda p: setattr(p.cpu.samples[0], "link_index", 2)),
    ("two samples with the identity", lambda p: p.wall.samples.append(p.wall.samples[1])),
    (
        "two samples with the identity",
        lambda p: p.wall.samples.add(stack_index=1, attribute_indices=[3, 2], values=[1]),
    ),
    ("CPU sample with a value", lambda p: p.cpu.samples[0].values.extend([1, 1])),
    ("CPU sample without a timestamp", lambda p: p.cpu.samples[0].ClearField("timestamps_unix_nano")),
    ("wall value that is not positive", lambda p: p.wall.samples[0].values.__setitem__(0, 0)),
    ("as many values as timestamps", lambda p: p.wall.samples[0].timestamps_unix_nano.extend([TIME, TIME])),
    ("timeline sample without values", lambda p: p.make_timeline().wall.samples.add(stack_index=2)),
    ("wall sample without exactly one value", lambda p: p.wall.samples[0].values.append(1)),
    ("sample attribute out of range", lambda p: p.cpu.samples[0].attribute_indices.append(0)),
    ("an attribute key twice in one sample", lambda p: p.cpu.samples[0].attribute_indices.append(4)),
    ("sample with a frame type", lambda p: p.cpu.samples[0].attribute_indices.append(1)),
    ("timestamp outside", lambda p: p.cpu.samples[0].timestamps_unix_nano.append(TIME + DURATION)),
    ("timestamp outside", lambda p: p.cpu.samples[0].timestamps_unix_nano.__setitem__(0, TIME - 1)),
    ("timestamps do not ascend", lambda p: p.cpu.samples[0].timestamps_unix_nano.append(TIME + 9)),
    ("stack_table holds unused", lambda p: p.dictionary.stack_table.add(location_indices=[1, 1])),
    ("location_table holds unused", lambda p: p.dictionary.stack_table[2].location_indices.__setitem__(0, 1)),
    ("function_table holds unused", lambda p: p.dictionary.function_table.add(name_strindex=1, filename_strindex=2)),
    ("link_table holds unused", lambda p: p.dictionary.link_table.add(trace_id=b"t" * 16, span_id=b"s" * 8)),
    ("attribute_table holds unused", lambda p: p.attributes.append(attribute("thread.name", "Thread-1"))),
    ("string_table holds unused", lambda p: p.string("nobody")),
    ("request too large", lambda p: p.resource.resource.attributes.add(key="x" * (3900 << 10))),
    ("profile too large", lambda p: p.dictionary.string_table.__setitem__(1, "x" * (3 << 20))),
]


@pytest.mark.parametrize(
    ("message", "plant"), VIOLATIONS, ids=[f"{i}-{message}" for i, (message, _) in enumerate(VIOLATIONS)]
)
def test_a_planted_violation_is_caught(message: str, plant: Plant) -> None:
    """One change to a conformant request, and the checker says what is wrong with it."""
    parts = Parts()
    plant(parts)
    with pytest.raises(AssertionError, match=message):
        check_request(parts.request)


def test_a_conformant_request_is_accepted() -> None:
    """No rule fires without a reason, with values alone and with the timeline."""
    parts = Parts()
    check_request(parts.request)
    parts.make_timeline()
    check_request(parts.request)


def test_a_sample_with_the_empty_stack_is_accepted() -> None:
    """The zero value of the stack table is a stack: the empty one."""
    parts = Parts()
    parts.cpu.samples.add(timestamps_unix_nano=[TIME])
    check_request(parts.request)


def test_every_assertion_of_the_checker_is_shown_to_fire() -> None:
    """The planted violations reach each assert statement of the checker."""
    path = Path(conformance.__file__)
    statements = {node.lineno for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Assert)}
    fired = set()
    for _, plant in VIOLATIONS:
        parts = Parts()
        plant(parts)
        try:
            check_request(parts.request)
        except AssertionError as error:
            fired.add([frame.lineno for frame in traceback.extract_tb(error.__traceback__)][-1])
    assert statements == fired
