"""What each backend that takes OTLP profiles is known to refuse or to lose: one function for each rule, by backend."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import conformance
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.profiles.v1development.profiles_pb2 import Profile, ProfilesDictionary, Sample

Request = ExportProfilesServiceRequest
Rule = Callable[[Request], None]

PYROSCOPE_MOST_SAMPLES = 16_000
PYROSCOPE_MOST_BYTES = 4 << 20  # of a profile with its dictionary
PYROSCOPE_MOST_FRAMES = 1000
PYROSCOPE_MOST_LABELS = 30
PYROSCOPE_MOST_LABEL_BYTES = 2048
GRPC_MOST_BYTES = 4 << 20
FRAME_TYPE = "profile.frame.type"


def profiles(request: Request) -> Iterator[Profile]:
    """All profiles of a request."""
    for resource in request.resource_profiles:
        for scope in resource.scope_profiles:
            yield from scope.profiles


def samples(request: Request) -> Iterator[tuple[Profile, Sample]]:
    """All samples of a request, each with its profile."""
    return ((profile, sample) for profile in profiles(request) for sample in profile.samples)


def types(request: Request, profile: Profile) -> tuple[str, ...]:
    """Type and unit of the samples and of the period; empty where there is none."""
    strings = request.dictionary.string_table
    pairs = (profile.sample_type, profile.period_type)
    return tuple(strings[i] for pair in pairs for i in (pair.type_strindex, pair.unit_strindex))


def keys(dictionary: ProfilesDictionary, indices: Iterable[int]) -> list[str]:
    """The keys of attributes by their places in the table."""
    return [dictionary.string_table[dictionary.attribute_table[index].key_strindex] for index in indices]


# profcheck, OpenTelemetry's own checker


def profcheck_tables_begin_with_zero(request: Request) -> None:
    """Every table is there, begins with its zero value and holds nothing twice."""
    for descriptor in request.dictionary.DESCRIPTOR.fields:
        table = getattr(request.dictionary, descriptor.name)
        assert len(table) > 0, f"{descriptor.name} is empty"
        entries = [entry if isinstance(entry, str) else entry.SerializeToString(deterministic=True) for entry in table]
        assert not entries[0], f"{descriptor.name} does not begin with zero"
        assert len(entries) == len(set(entries)), f"{descriptor.name} holds an entry twice"


def profcheck_indices_are_in_range(request: Request) -> None:
    """Whatever refers to a table finds an entry there."""
    dictionary = request.dictionary
    tables = {
        "stack_index": "stack_table",
        "link_index": "link_table",
        "attribute_indices": "attribute_table",
        "location_indices": "location_table",
        "function_index": "function_table",
        "mapping_index": "mapping_table",
    }
    for message in itertools.chain(conformance.messages(dictionary), *map(conformance.messages, profiles(request))):
        for descriptor, value in message.ListFields():
            table = tables.get(descriptor.name, "string_table" if descriptor.name.endswith("strindex") else "")
            if table:
                for index in [value] if isinstance(value, int) else value:
                    assert 0 <= index < len(getattr(dictionary, table)), f"{descriptor.name} is out of range"


def profcheck_nothing_is_unused(request: Request) -> None:
    """No entry of a table that no sample leads to."""
    conformance.check_orphans(request.dictionary, list(profiles(request)))


def profcheck_links_are_whole(request: Request) -> None:
    """16 and 8 bytes, but for the first, which is empty."""
    for link in request.dictionary.link_table[1:]:
        assert (len(link.trace_id), len(link.span_id)) == (16, 8), "a link that is not whole"


def profcheck_profile_ids_are_whole(request: Request) -> None:
    """16 bytes or none."""
    assert all(len(profile.profile_id) in (0, 16) for profile in profiles(request)), "a profile id that is not whole"


def profcheck_attributes_are_unique(request: Request) -> None:
    """No key twice for one sample, location or resource."""
    dictionary = request.dictionary
    owners = [keys(dictionary, sample.attribute_indices) for _, sample in samples(request)]
    owners += [keys(dictionary, location.attribute_indices) for location in dictionary.location_table]
    owners += [[each.key for each in resource.resource.attributes] for resource in request.resource_profiles]
    assert all(len(owner) == len(set(owner)) for owner in owners), "a key twice"


def profcheck_samples_of_a_profile_have_one_shape(request: Request) -> None:
    """Timestamps alone, one value alone, or as many of the ones as of the others."""
    for profile in profiles(request):
        counts = [(len(sample.values), len(sample.timestamps_unix_nano)) for sample in profile.samples]
        only_timestamps = all(values == 0 and timestamps > 0 for values, timestamps in counts)
        one_value = all(pair == (1, 0) for pair in counts)
        pairs = all(values == timestamps > 0 for values, timestamps in counts)
        assert only_timestamps or one_value or pairs, "samples of several shapes"


def profcheck_timestamps_are_within_the_profile(request: Request) -> None:
    """From its time, for its duration."""
    for profile, sample in samples(request):
        first, last = profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano
        assert all(first <= time <= last for time in sample.timestamps_unix_nano), "a timestamp outside"


def profcheck_samples_of_one_identity_are_one(request: Request) -> None:
    """Stack, attributes and link make a sample."""
    for profile in profiles(request):
        identities = [(s.stack_index, frozenset(s.attribute_indices), s.link_index) for s in profile.samples]
        assert len(identities) == len(set(identities)), "an identity twice"


def profcheck_mappings_have_a_build_id(request: Request) -> None:
    """So there is none for Python code."""
    for mapping in request.dictionary.mapping_table[1:]:
        found = keys(request.dictionary, mapping.attribute_indices)
        assert any(key.startswith("process.executable.build_id.") for key in found), "a mapping without a build id"


# Grafana Pyroscope


def pyroscope_period_has_a_type(request: Request) -> None:
    """It makes the name of the profile: without one, or with a period of zero, the push is refused."""
    for profile in profiles(request):
        names = types(request, profile)
        assert all(names), "a type without a name"
        assert profile.period > 0, "no period"
        assert "-" not in "".join(names[:2]), "a hyphen in the sample's type"


def pyroscope_samples_have_one_value(request: Request) -> None:
    """Or timestamps alone, which are counted."""
    for _, sample in samples(request):
        counts = (len(sample.values), len(sample.timestamps_unix_nano))
        assert counts == (1, 0) or (counts[0] == 0 and counts[1] > 0), "not one value"


def pyroscope_has_a_mapping(request: Request) -> None:
    """It looks at the first without asking whether there is one."""
    assert len(request.dictionary.mapping_table) > 0, "no mapping"


def pyroscope_keys_are_plain(request: Request) -> None:
    """References into the string table are not understood in attributes; a hyphen in a key makes it refuse the push."""
    owners: list[Any] = [resource.resource for resource in request.resource_profiles]
    owners += [scope.scope for resource in request.resource_profiles for scope in resource.scope_profiles]
    for message in itertools.chain(*map(conformance.messages, [*owners, *request.dictionary.attribute_table])):
        names = {descriptor.name for descriptor, _ in message.ListFields()}
        is_value = "string_value_strindex" in names
        assert not is_value, "a value refers to the string table"
        is_key = message.DESCRIPTOR.name == "KeyValue" and "key_strindex" in names
        assert not is_key, "a key refers to the string table"
    for key in keys(request.dictionary, range(1, len(request.dictionary.attribute_table))):
        assert conformance.KEY.fullmatch(key), f"{key!r} is no label"


def pyroscope_labels_are_few(request: Request) -> None:
    """Those of the resource, of the scope and of one sample together."""
    for resource in request.resource_profiles:
        for scope in resource.scope_profiles:
            outer = len(resource.resource.attributes) + len(scope.scope.attributes)
            inner = max(len(s.attribute_indices) for profile in scope.profiles for s in profile.samples)
            assert outer + inner <= PYROSCOPE_MOST_LABELS, "too many labels"


def pyroscope_labels_are_short(request: Request) -> None:
    """One that is not makes it refuse the push."""
    for attribute in request.dictionary.attribute_table:
        size = len(attribute.value.string_value.encode())
        assert size <= PYROSCOPE_MOST_LABEL_BYTES, f"a label of {size} bytes"


def pyroscope_profiles_are_small(request: Request) -> None:
    """In samples, and in bytes with the dictionary."""
    for profile in profiles(request):
        assert len(profile.samples) <= PYROSCOPE_MOST_SAMPLES, "too many samples"
        assert profile.ByteSize() + request.dictionary.ByteSize() <= PYROSCOPE_MOST_BYTES, "too many bytes"


def pyroscope_stacks_are_not_deep(request: Request) -> None:
    """Of a deeper one it loses the innermost frames."""
    deepest = max(len(stack.location_indices) for stack in request.dictionary.stack_table)
    assert deepest <= PYROSCOPE_MOST_FRAMES, "a stack too deep"


# Elastic: the Collector's elasticsearch exporter in its ECS mode, which takes CPU profiles and no others


def elastic_samples_are_counted_by_cpu_time(request: Request) -> None:
    """With a whole number of periods in a second; of other types it takes none."""
    for profile in profiles(request):
        if types(request, profile)[0] == "samples":
            assert types(request, profile) == ("samples", "count", "cpu", "nanoseconds"), "another type of profile"
            assert 1_000_000_000 % profile.period == 0, "no whole number of samples a second"


def elastic_cpu_samples_have_timestamps(request: Request) -> None:
    """Each makes an event: a sample without any makes none."""
    for profile, sample in samples(request):
        if types(request, profile)[0] == "samples":
            assert sample.timestamps_unix_nano, "a CPU sample without a timestamp"


def elastic_every_location_has_a_frame_type(request: Request) -> None:
    """Else the profile is an error."""
    for location in request.dictionary.location_table[1:]:
        assert FRAME_TYPE in keys(request.dictionary, location.attribute_indices), "a location without a frame type"


# The Collector, and gRPC servers in general


def collector_takes_the_size(request: Request) -> None:
    """4 MiB, unless the server was told otherwise."""
    assert request.ByteSize() <= GRPC_MOST_BYTES, "a request too large"


def collector_has_something_to_pass_on(request: Request) -> None:
    """It drops requests without samples."""
    assert any(samples(request)), "no sample"


BACKENDS = ("profcheck", "pyroscope", "elastic", "collector")
RULES: dict[str, Rule] = {
    name: value for name, value in dict(globals()).items() if callable(value) and name.split("_")[0] in BACKENDS
}
