"""The encoder: what exceeds the limits of a profile or a request goes on in another, with exact weights."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from conformance import (
    CPU,
    MAX_PROFILE_BYTES,
    MAX_REQUEST_BYTES,
    MAX_SAMPLES_PER_PROFILE,
    WALL,
    check_request,
)
from native_tables import THREAD_ID, Frame, StackTable
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesDictionary, Sample
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from otlp_requests import (
    ALL,
    DURATION,
    MAIN,
    PERIOD,
    QUERY,
    TIME,
    counting_ids,
    encode,
    link_of,
    only_sample,
    profiles_of,
)


def random_stacks(table: StackTable, rng: random.Random, count: int, frames: int, name_bytes: int = 0) -> list[int]:
    """Stacks of some 20,000 different locations."""
    functions = [Frame(f"f{number}" + "x" * name_bytes, f"m{number % 40}.py") for number in range(400)]
    return [
        table.stack([replace(rng.choice(functions), line=rng.randrange(50)) for _ in range(frames)])
        for _ in range(count)
    ]


def large_table(
    samples: int, frames: int, name_bytes: int = 0, timeline: bool = False
) -> tuple[StackTable, Counter[Any]]:
    """Distinct stacks with known weights; the sums by leaf and link."""
    table, expected = StackTable(), Counter[Any]()
    rng = random.Random(5)
    stacks = random_stacks(table, rng, 100, frames, name_bytes)
    for number in range(samples):
        leaf = Frame(f"leaf{number}" + "y" * name_bytes)
        wall, cpu = rng.randrange(10**9), rng.randrange(3)
        link = (rng.randbytes(16), rng.randbytes(8))
        weight: dict[str, Any] = {"wall_ns": wall, "cpu_periods": cpu, "time": TIME, "with_event": timeline}
        table.add([leaf], parent=stacks[number % 100], link=link, thread_name="T", **weight)
        expected[leaf.name, link, "wall"] += wall
        expected[leaf.name, link, "cpu"] += cpu
    return table, +expected


def leaf_of(dictionary: ProfilesDictionary, sample: Sample) -> str:
    """The name of the function that a sample was in."""
    location = dictionary.location_table[dictionary.stack_table[sample.stack_index].location_indices[0]]
    return dictionary.string_table[dictionary.function_table[location.lines[0].function_index].name_strindex]


def sums(requests: list[ExportProfilesServiceRequest]) -> Counter[Any]:
    """Weights by leaf and link over all requests."""
    found = Counter[Any]()
    for request in requests:
        for types, profile in profiles_of(request).items():
            for sample in profile.samples:
                key = (leaf_of(request.dictionary, sample), link_of(request.dictionary, sample))
                found[*key, "wall"] += sum(sample.values)
                found[*key, "cpu"] += len(sample.timestamps_unix_nano) if types == CPU else 0
    return +found


def test_too_many_samples_go_on_in_further_requests_with_their_exact_weights() -> None:
    """Every request is complete in itself, the sums are those that went in, and no profile id comes twice."""
    table, expected = large_table(MAX_SAMPLES_PER_PROFILE + 500, 2)
    requests = encode(table)
    assert [len(profiles_of(request)[WALL].samples) for request in requests] == [15_000, 500]
    assert sums(requests) == expected
    ids = [profile.profile_id for request in requests for profile in profiles_of(request).values()]
    assert len(set(ids)) == 4


def test_wall_samples_alone_fill_a_profile_to_its_bound() -> None:
    """CPU samples do not count against wall samples."""
    table = StackTable()
    for number in range(MAX_SAMPLES_PER_PROFILE + 1):
        table.add([MAIN], thread_id=number + 1, wall_ns=1, cpu_periods=number % 2, time=TIME)
    first, second = encode(table, attributes=THREAD_ID)
    assert [len(p.samples) for p in profiles_of(first).values()] == [7_500, 15_000]
    assert [len(p.samples) for p in profiles_of(second).values()] == [1]


@pytest.mark.parametrize(("frames", "name_bytes", "timeline"), [(120, 0, False), (3, 2_000, False), (3, 300, True)])
def test_large_profiles_are_split_by_size_with_their_exact_weights(
    frames: int, name_bytes: int, timeline: bool
) -> None:
    """Deep stacks, long names, the timeline: check_sizes() looks at each request; each but the last is nearly full."""
    table, expected = large_table(4_000 if name_bytes == 2_000 else 14_000, frames, name_bytes, timeline)
    requests = encode(table, timeline=timeline)
    assert len(requests) > 1
    assert sums(requests) == expected
    for request in requests[:-1]:
        profile_bytes = max(p.ByteSize() for p in profiles_of(request).values()) + request.dictionary.ByteSize()
        assert profile_bytes > MAX_PROFILE_BYTES - 10_000 or request.ByteSize() > MAX_REQUEST_BYTES - 10_000


def test_a_large_resource_counts_against_the_request() -> None:
    """With 3 MiB of resource the rest must be smaller: check_sizes() looks."""
    table, expected = large_table(10_000, 20)
    resource = Resource(attributes=[KeyValue(key="notes", value=AnyValue(string_value="n" * (3 << 20)))])
    requests = encode(table, resource=resource.SerializeToString())
    assert len(requests) > 1
    assert all(request.resource_profiles[0].resource == resource for request in requests)
    assert sums(requests) == expected


def test_a_sample_that_exceeds_the_bounds_alone_is_sent_alone() -> None:
    """Its neighbours are in conformant requests before and after it."""
    table = StackTable()
    table.add([MAIN], wall_ns=1)
    table.add([Frame(f"{number}" + "x" * 900_000) for number in range(5)], wall_ns=2)
    table.add([QUERY], wall_ns=3)
    encoded = table.encode(time=TIME, duration=DURATION, period_ns=PERIOD, random=counting_ids())
    before, alone, after = (ExportProfilesServiceRequest.FromString(request) for request in encoded)
    assert [only_sample(request, WALL).values[0] for request in (before, alone, after)] == [1, 2, 3]
    check_request(before)
    check_request(after)
    with pytest.raises(AssertionError, match="too large"):
        check_request(alone)


def test_an_emit_that_refuses_ends_the_encoding() -> None:
    """No further request is made; encode() itself checks the result."""
    table, _ = large_table(MAX_SAMPLES_PER_PROFILE + 1, 1)
    requests = table.encode(random=counting_ids(), accept=lambda _: False)
    assert len(requests) == 1


def test_the_bytes_are_the_same_on_every_run_but_for_the_profile_ids() -> None:
    """Two tables filled alike, with hash seeds of their own, give equal bytes."""
    first, second = large_table(500, 20)[0], large_table(500, 20)[0]
    assert encode(first) == encode(second)
    (one,), (other,) = encode(first), encode(first, random=lambda size: b"\xff" + random.randbytes(size - 1))
    assert one != other
    for request in (one, other):
        for number, profile in enumerate(profiles_of(request).values()):
            profile.profile_id = bytes([number])
    assert one == other


def test_ten_thousand_deep_samples_take_milliseconds() -> None:
    """10,000 samples of 40 frames: far below what would be felt, on a machine that others use too."""
    table = StackTable()
    rng = random.Random(1)
    stacks = random_stacks(table, rng, 400, 39)
    for number in range(10_000):
        link = (rng.randbytes(16), rng.randbytes(8))
        leaf, parent = [Frame(f"leaf{number // 400}")], stacks[number % 400]
        table.add(leaf, parent=parent, thread_id=number + 1, link=link, wall_ns=1, cpu_periods=1, time=TIME)
    seconds = []
    for _ in range(5):
        start = time.thread_time()
        table.encode(attributes=ALL, random=random.randbytes)
        seconds.append(time.thread_time() - start)
    print(f"milliseconds of CPU: {[round(1000 * s, 1) for s in seconds]}")
    assert statistics.median(seconds) < 0.1, seconds
