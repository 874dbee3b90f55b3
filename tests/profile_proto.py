"""pprof's message types, made from the fields of profile.proto: what google.protobuf needs to judge our bytes."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from otel_asyncprof.formats.stack_sample import Frame

# Message -> fields as (name, number, type); a type in capitals is a message, a trailing + is "repeated".
_MESSAGES = {
    "Profile": "sample_type 1 ValueType+, sample 2 Sample+, mapping 3 Mapping+, location 4 Location+,"
    " function 5 Function+, string_table 6 string+, drop_frames 7 int64, keep_frames 8 int64, time_nanos 9 int64,"
    " duration_nanos 10 int64, period_type 11 ValueType, period 12 int64, comment 13 int64+,"
    " default_sample_type 14 int64, doc_url 15 int64",
    "ValueType": "type 1 int64, unit 2 int64",
    "Sample": "location_id 1 uint64+, value 2 int64+, label 3 Label+",
    "Label": "key 1 int64, str 2 int64, num 3 int64, num_unit 4 int64",
    "Mapping": "id 1 uint64, memory_start 2 uint64, memory_limit 3 uint64, file_offset 4 uint64, filename 5 int64,"
    " build_id 6 int64, has_functions 7 bool, has_filenames 8 bool, has_line_numbers 9 bool, has_inline_frames 10 bool",
    "Location": "id 1 uint64, mapping_id 2 uint64, address 3 uint64, line 4 Line+, is_folded 5 bool",
    "Line": "function_id 1 uint64, line 2 int64, column 3 int64",
    "Function": "id 1 uint64, name 2 int64, system_name 3 int64, filename 4 int64, start_line 5 int64",
}
_TYPES = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}
_MESSAGE_TYPE, _OPTIONAL, _REPEATED = 11, 1, 3


def _make_profile_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for text in fields.split(","):
            name, number, kind = text.split()
            field = message.field.add(name=name, number=int(number), label=_REPEATED if "+" in kind else _OPTIONAL)
            kind = kind.rstrip("+")
            field.type = _TYPES.get(kind, _MESSAGE_TYPE)
            if kind not in _TYPES:
                field.type_name = f".perftools.profiles.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


Profile = _make_profile_class()


def frames_by_location(profile: Any) -> dict[int, Frame]:
    """The frame of each location id; each location is one function."""
    strings, functions = profile.string_table, {function.id: function for function in profile.function}
    frames = {}
    for location in profile.location:
        (line,) = location.line
        function = functions[line.function_id]
        assert function.system_name == function.name
        frames[location.id] = Frame(strings[function.name], strings[function.filename], line.line, function.start_line)
    return frames


def labels_of(profile: Any, sample: Any) -> dict[str, Any]:
    """The labels of a sample of the profile: numbers or texts."""
    strings = profile.string_table
    return {strings[label.key]: label.num or strings[label.str] for label in sample.label}
