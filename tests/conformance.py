"""The rules for what we export: check_request() fails with a clear message when a request breaks one of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.profiles.v1development.profiles_pb2 import (
    KeyValueAndUnit,
    Profile,
    ProfilesDictionary,
    Sample,
    ValueType,
)

MAX_SAMPLES_PER_PROFILE = 15_000
MAX_PROFILE_BYTES = 3 << 20
MAX_REQUEST_BYTES = 3900 << 10
MAX_FRAMES = 512
SCOPE_NAME = "otel_asyncprof"
CPU = ("samples", "count", "cpu", "nanoseconds")
WALL = ("wall", "nanoseconds", "wall", "nanoseconds")
STATES = {"running", "blocked", "waiting", "ready"}
FRAME_TYPE = "profile.frame.type"
SAMPLE_ATTRIBUTES = {
    "thread.name": "string_value",
    "asyncprof.state": "string_value",
    "thread.id": "int_value",
    "asyncio.task.name": "string_value",
    "asyncprof.local_root.name": "string_value",
}
KEY = re.compile(r"[a-z0-9_.]+")


def check_request(request: ExportProfilesServiceRequest) -> None:
    """Checks every rule of the export; AssertionError says what is wrong."""
    check_known_fields(request)
    check_structure(request)
    dictionary = request.dictionary
    check_tables(dictionary)
    check_locations(dictionary)
    check_functions(dictionary)
    check_stacks(dictionary)
    check_links(dictionary)
    check_attributes(dictionary)
    profiles = list(request.resource_profiles[0].scope_profiles[0].profiles)
    check_profile_types(dictionary, profiles)
    for profile in profiles:
        check_profile(dictionary, profile)
        check_samples(dictionary, profile)
    check_orphans(dictionary, profiles)
    check_sizes(request, profiles)


def messages(message: Message) -> Iterable[Message]:
    """The message and everything nested in it."""
    yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        nested = [value] if isinstance(value, Message) else value
        for item in nested:
            yield from messages(item)


def check_known_fields(request: ExportProfilesServiceRequest) -> None:
    """Nothing that this version of the protocol does not know, and no reference where receivers want plain values."""
    known = ExportProfilesServiceRequest()
    known.CopyFrom(request)
    known.DiscardUnknownFields()
    assert known.ByteSize() == request.ByteSize(), "unknown field"
    owners = [item for resource_profiles in request.resource_profiles for item in messages(resource_profiles.resource)]
    for message in itertools.chain(owners, *map(messages, request.dictionary.attribute_table)):
        if isinstance(message, AnyValue):
            assert message.WhichOneof("value") != "string_value_strindex", "AnyValue refers to the string table"
        if isinstance(message, KeyValue):
            assert not message.key_strindex, "KeyValue refers to the string table"


def check_structure(request: ExportProfilesServiceRequest) -> None:
    """One resource, one scope that is ours, one or two profiles."""
    assert len(request.resource_profiles) == 1, "not exactly one ResourceProfiles"
    resource_profiles = request.resource_profiles[0]
    assert resource_profiles.HasField("resource"), "no resource"
    keys = [attribute.key for attribute in resource_profiles.resource.attributes]
    assert len(keys) == len(set(keys)), "a resource attribute twice"
    assert len(resource_profiles.scope_profiles) == 1, "not exactly one ScopeProfiles"
    scope_profiles = resource_profiles.scope_profiles[0]
    assert scope_profiles.scope.name == SCOPE_NAME, f"scope is {scope_profiles.scope.name!r}"
    assert scope_profiles.scope.version, "scope without a version"
    assert scope_profiles.schema_url, "scope without a schema URL"
    assert 1 <= len(scope_profiles.profiles) <= 2, "not one or two profiles"


def check_tables(dictionary: ProfilesDictionary) -> None:
    """Every table starts with its zero value and holds nothing twice."""
    assert len(dictionary.mapping_table) == 1, "mapping_table is not exactly its zero value"
    for descriptor in dictionary.DESCRIPTOR.fields:
        table: Sequence[Any] = getattr(dictionary, descriptor.name)
        assert table, f"{descriptor.name} is empty"
        entries = [entry if isinstance(entry, str) else entry.SerializeToString(deterministic=True) for entry in table]
        assert not entries[0], f"{descriptor.name}[0] is not the zero value"
        assert len(entries) == len(set(entries)), f"{descriptor.name} holds an entry twice"


def in_range(index: int, table: Sequence[Any]) -> bool:
    """Whether an index names an entry that is not the zero value."""
    return 0 < index < len(table)


def check_locations(dictionary: ProfilesDictionary) -> None:
    """A Python frame: one line, the frame type, no address."""
    for location in dictionary.location_table[1:]:
        assert not location.mapping_index, "location with a mapping"
        assert not location.address, "location with an address"
        assert len(location.lines) == 1, "location without exactly one line"
        line = location.lines[0]
        assert in_range(line.function_index, dictionary.function_table), "line without a function"
        assert 0 <= line.line < 1 << 31, "line number out of range"
        assert not line.column, "line with a column"
        assert len(location.attribute_indices) == 1, "location without exactly one attribute"
        assert in_range(location.attribute_indices[0], dictionary.attribute_table), "location attribute out of range"
        attribute = dictionary.attribute_table[location.attribute_indices[0]]
        assert key_of(dictionary, attribute) == FRAME_TYPE, "location attribute is not the frame type"
        assert attribute.value.string_value == "cpython", "frame type is not cpython"


def check_functions(dictionary: ProfilesDictionary) -> None:
    """A function has a name; what it has no file for is one of our own frames."""
    for function in dictionary.function_table[1:]:
        assert in_range(function.name_strindex, dictionary.string_table), "function without a name"
        assert not function.system_name_strindex, "function with a system name"
        assert 0 <= function.filename_strindex < len(dictionary.string_table), "file name out of range"
        name = dictionary.string_table[function.name_strindex]
        synthetic = name.startswith("<") and name.endswith(">")
        assert function.filename_strindex or synthetic, f"function {name!r} without a file name"
        assert 0 <= function.start_line < 1 << 31, "start line out of range"


def check_stacks(dictionary: ProfilesDictionary) -> None:
    """A stack holds known locations, at least one and at most what we ever take."""
    for stack in dictionary.stack_table[1:]:
        assert len(stack.location_indices) <= MAX_FRAMES, "stack too deep"
        for index in stack.location_indices:
            assert in_range(index, dictionary.location_table), "stack location out of range"


def check_links(dictionary: ProfilesDictionary) -> None:
    """A link has ids of the right size that are not zero."""
    for link in dictionary.link_table[1:]:
        assert len(link.trace_id) == 16, "trace id has not 16 bytes"
        assert any(link.trace_id), "trace id is zero"
        assert len(link.span_id) == 8, "span id has not 8 bytes"
        assert any(link.span_id), "span id is zero"


def key_of(dictionary: ProfilesDictionary, attribute: KeyValueAndUnit) -> str:
    """The key of an attribute table entry."""
    assert in_range(attribute.key_strindex, dictionary.string_table), "attribute without a key"
    return dictionary.string_table[attribute.key_strindex]


def check_attributes(dictionary: ProfilesDictionary) -> None:
    """Known keys, each with its type of value and no unit."""
    for attribute in dictionary.attribute_table[1:]:
        key = key_of(dictionary, attribute)
        assert KEY.fullmatch(key), f"attribute key {key!r} has other characters than a-z, 0-9, _ and ."
        assert not key.startswith("code."), f"attribute {key!r}: code.* belongs to no profile"
        assert not attribute.unit_strindex, "attribute with a unit"
        assert key == FRAME_TYPE or key in SAMPLE_ATTRIBUTES, f"unknown attribute {key!r}"
        kind = attribute.value.WhichOneof("value")
        assert kind == SAMPLE_ATTRIBUTES.get(key, "string_value"), f"attribute {key!r} is a {kind}"
        assert getattr(attribute.value, kind), f"attribute {key!r} is present but empty"
        if key == "asyncprof.state":
            assert attribute.value.string_value in STATES, f"unknown state {attribute.value.string_value!r}"


def names_of(dictionary: ProfilesDictionary, *types: ValueType) -> tuple[str, ...]:
    """Type and unit of value types as strings."""
    indices = [index for value_type in types for index in (value_type.type_strindex, value_type.unit_strindex)]
    assert all(in_range(index, dictionary.string_table) for index in indices), "sample or period type out of range"
    return tuple(dictionary.string_table[index] for index in indices)


def types_of(dictionary: ProfilesDictionary, profile: Profile) -> tuple[str, ...]:
    """Sample type and period type of a profile as strings."""
    return names_of(dictionary, profile.sample_type, profile.period_type)


def check_profile_types(dictionary: ProfilesDictionary, profiles: list[Profile]) -> None:
    """CPU first, for viewers prefer the first profile; each type once; the same interval."""
    types = [types_of(dictionary, profile) for profile in profiles]
    assert types in ([CPU], [WALL], [CPU, WALL]), f"profile types are {types}"
    assert len({(profile.time_unix_nano, profile.duration_nano) for profile in profiles}) == 1, "intervals differ"
    assert len({profile.profile_id for profile in profiles}) == len(profiles), "two profiles with one id"


def check_profile(dictionary: ProfilesDictionary, profile: Profile) -> None:
    """The fields of a profile beside its samples."""
    assert len(profile.profile_id) == 16, "profile id has not 16 bytes"
    assert any(profile.profile_id), "profile id is zero"
    assert profile.time_unix_nano, "profile without a time"
    assert profile.duration_nano, "profile without a duration"
    assert profile.period > 0, "profile without a period"
    assert not profile.attribute_indices, "profile with attributes"
    assert not profile.dropped_attributes_count, "profile with dropped attributes"
    assert not profile.original_payload_format, "profile with the format of an original payload"
    assert not profile.original_payload, "profile with an original payload"


def check_samples(dictionary: ProfilesDictionary, profile: Profile) -> None:
    """Each identity once, all of one shape."""
    assert profile.samples, "profile without samples"
    assert len(profile.samples) <= MAX_SAMPLES_PER_PROFILE, "profile with too many samples"
    identities = set()
    for sample in profile.samples:
        assert 0 <= sample.stack_index < len(dictionary.stack_table), "stack index out of range"
        assert 0 <= sample.link_index < len(dictionary.link_table), "link index out of range"
        check_sample_attributes(dictionary, sample)
        identity = (sample.stack_index, frozenset(sample.attribute_indices), sample.link_index)
        assert identity not in identities, f"two samples with the identity {identity}"
        identities.add(identity)
        check_timestamps(profile, sample)
    if types_of(dictionary, profile) == CPU:
        assert not any(sample.values for sample in profile.samples), "CPU sample with a value"
        assert all(sample.timestamps_unix_nano for sample in profile.samples), "CPU sample without a timestamp"
    else:
        check_wall_samples(profile)


def check_wall_samples(profile: Profile) -> None:
    """One value without timestamps, or as many values as timestamps: the same for all samples."""
    assert all(value > 0 for sample in profile.samples for value in sample.values), "wall value that is not positive"
    if any(sample.timestamps_unix_nano for sample in profile.samples):
        for sample in profile.samples:
            assert len(sample.values) == len(sample.timestamps_unix_nano), "as many values as timestamps are needed"
            assert sample.values, "timeline sample without values"
    else:
        assert all(len(sample.values) == 1 for sample in profile.samples), "wall sample without exactly one value"


def check_sample_attributes(dictionary: ProfilesDictionary, sample: Sample) -> None:
    """Attributes of samples only, each key once."""
    for index in sample.attribute_indices:
        assert in_range(index, dictionary.attribute_table), "sample attribute out of range"
    keys = [key_of(dictionary, dictionary.attribute_table[index]) for index in sample.attribute_indices]
    assert len(keys) == len(set(keys)), "an attribute key twice in one sample"
    assert FRAME_TYPE not in keys, "sample with a frame type"


def check_timestamps(profile: Profile, sample: Sample) -> None:
    """Within the interval, ascending."""
    times = list(sample.timestamps_unix_nano)
    end = profile.time_unix_nano + profile.duration_nano
    assert all(profile.time_unix_nano <= time < end for time in times), "timestamp outside the interval"
    assert times == sorted(times), "timestamps do not ascend"


def check_orphans(dictionary: ProfilesDictionary, profiles: list[Profile]) -> None:
    """Every entry is used by what a sample leads to."""
    samples = [sample for profile in profiles for sample in profile.samples]
    stacks = {sample.stack_index for sample in samples}
    locations = {index for stack in stacks for index in dictionary.stack_table[stack].location_indices}
    used_locations = [dictionary.location_table[index] for index in locations]
    functions = {line.function_index for location in used_locations for line in location.lines}
    attributes = {index for sample in samples for index in sample.attribute_indices}
    attributes |= {index for location in used_locations for index in location.attribute_indices}
    strings = {dictionary.attribute_table[index].key_strindex for index in attributes}
    for index in functions:
        strings |= {dictionary.function_table[index].name_strindex, dictionary.function_table[index].filename_strindex}
    for profile in profiles:
        for value_type in (profile.sample_type, profile.period_type):
            strings |= {value_type.type_strindex, value_type.unit_strindex}
    used = {
        "stack_table": stacks,
        "location_table": locations,
        "function_table": functions,
        "link_table": {sample.link_index for sample in samples},
        "attribute_table": attributes,
        "string_table": strings,
    }
    for name, indices in used.items():
        orphans = set(range(1, len(getattr(dictionary, name)))) - indices
        assert not orphans, f"{name} holds unused entries {sorted(orphans)[:10]}"


def check_sizes(request: ExportProfilesServiceRequest, profiles: list[Profile]) -> None:
    """Receivers count a profile with its dictionary."""
    assert request.ByteSize() <= MAX_REQUEST_BYTES, "request too large"
    for profile in profiles:
        assert profile.ByteSize() + request.dictionary.ByteSize() <= MAX_PROFILE_BYTES, "profile too large"
