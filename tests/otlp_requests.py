"""What tests of the encoder share: encoding to official messages, and their parts by meaning."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from conformance import (
    check_request,
    types_of,
)
from native_tables import LOCAL_ROOT_NAME, STATE, TASK_NAME, THREAD_ID, THREAD_NAME, Frame, StackTable
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.profiles.v1development.profiles_pb2 import Profile, ProfilesDictionary, Sample
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

TIME, DURATION, PERIOD = 1_000_000_000, 10_000_000_000, 10_000_000
LAST = TIME + DURATION - 1
ALL = THREAD_NAME | STATE | THREAD_ID | TASK_NAME | LOCAL_ROOT_NAME
RESOURCE = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])
LINK = (bytes(range(1, 17)), bytes(range(1, 9)))
MAIN, HANDLER, QUERY = (
    Frame("main", "app.py", 3, 1),
    Frame("Shop.handler", "app.py", 20, 15),
    Frame("query", "db.py", 7, 5),
)
SCOPE_SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"


def counting_ids() -> Callable[[int], bytes]:
    """Ids that differ and are the same on every run."""
    numbers = itertools.count(1)
    return lambda size: next(numbers).to_bytes(size, "big")


def encode(table: StackTable, **options: Any) -> list[ExportProfilesServiceRequest]:
    """The decoded requests; each is conformant, and is what the official library would have written, byte by byte."""
    requests = []
    defaults = {"time": TIME, "duration": DURATION, "period_ns": PERIOD, "random": counting_ids()}
    merged: dict[str, Any] = {**defaults, "resource": RESOURCE.SerializeToString(), **options}
    for encoded in table.encode(**merged):
        request = ExportProfilesServiceRequest.FromString(encoded)
        assert request.SerializeToString(deterministic=True) == encoded
        check_request(request)
        requests.append(request)
    return requests


def profiles_of(request: ExportProfilesServiceRequest) -> dict[tuple[str, ...], Profile]:
    """The profiles of a request by their types."""
    return {types_of(request.dictionary, p): p for p in request.resource_profiles[0].scope_profiles[0].profiles}


def frames_of(dictionary: ProfilesDictionary, sample: Sample) -> tuple[Frame, ...]:
    """The stack of a sample, root first."""
    frames = []
    for index in reversed(dictionary.stack_table[sample.stack_index].location_indices):
        (line,) = dictionary.location_table[index].lines
        function = dictionary.function_table[line.function_index]
        name, filename = (dictionary.string_table[i] for i in (function.name_strindex, function.filename_strindex))
        frames.append(Frame(name, filename, line.line, function.start_line))
    return tuple(frames)


def attributes_of(dictionary: ProfilesDictionary, sample: Sample) -> dict[str, str | int]:
    """The attributes of a sample."""
    entries = [dictionary.attribute_table[index] for index in sample.attribute_indices]
    return {
        dictionary.string_table[e.key_strindex]: getattr(e.value, e.value.WhichOneof("value") or "") for e in entries
    }


def link_of(dictionary: ProfilesDictionary, sample: Sample) -> tuple[bytes, bytes]:
    """The link of a sample."""
    link = dictionary.link_table[sample.link_index]
    return link.trace_id, link.span_id


def only_sample(request: ExportProfilesServiceRequest, types: tuple[str, ...]) -> Sample:
    """The one sample of the one profile of these types."""
    (sample,) = profiles_of(request)[types].samples
    return sample
