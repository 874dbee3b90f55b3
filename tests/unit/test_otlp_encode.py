"""The encoder: what a stack table holds arrives in official protobuf messages, complete and conformant."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable
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


def test_a_sample_arrives_with_its_stack_link_and_attributes_in_both_profiles() -> None:
    """The whole of one sample, and everything around it."""
    table = StackTable()
    table.add(
        [MAIN, HANDLER, QUERY],
        link=LINK,
        thread_name="MainThread",
        task_name="Task-7",
        local_root_name="GET /shop",
        state="running",
        thread_id=0x7F00_1234_5678_9ABC,
        wall_ns=25_000_000,
        cpu_periods=2,
        period_ns=PERIOD,
        time=TIME + 50_000_000,
    )
    (request,) = encode(table, attributes=ALL)
    resource_profiles = request.resource_profiles[0]
    assert resource_profiles.resource == RESOURCE
    assert resource_profiles.schema_url == "https://opentelemetry.io/schemas/1.44.0"
    scope_profiles = resource_profiles.scope_profiles[0]
    assert (scope_profiles.scope.name, scope_profiles.scope.version) == ("otel_asyncprof", "1.2.3")
    assert scope_profiles.schema_url == SCOPE_SCHEMA_URL
    assert [types_of(request.dictionary, profile) for profile in scope_profiles.profiles] == [CPU, WALL]
    cpu, wall = only_sample(request, CPU), only_sample(request, WALL)
    assert list(cpu.timestamps_unix_nano) == [TIME + 40_000_000, TIME + 50_000_000]
    assert list(wall.values) == [25_000_000]
    for number, profile in enumerate(scope_profiles.profiles, 1):
        (sample,) = profile.samples
        assert frames_of(request.dictionary, sample) == (MAIN, HANDLER, QUERY)
        assert link_of(request.dictionary, sample) == LINK
        assert attributes_of(request.dictionary, sample) == {
            "thread.name": "MainThread",
            "asyncprof.state": "running",
            "thread.id": 0x7F00_1234_5678_9ABC,
            "asyncio.task.name": "Task-7",
            "asyncprof.local_root.name": "GET /shop",
        }
        assert (profile.time_unix_nano, profile.duration_nano, profile.period) == (TIME, DURATION, PERIOD)
        assert profile.profile_id == number.to_bytes(16, "big")


def test_locations_are_leaf_first() -> None:
    """OTLP's order is the opposite of ours."""
    table = StackTable()
    table.add([MAIN, QUERY], wall_ns=1)
    (request,) = encode(table)
    leaf = request.dictionary.location_table[request.dictionary.stack_table[1].location_indices[0]]
    name = request.dictionary.function_table[leaf.lines[0].function_index].name_strindex
    assert request.dictionary.string_table[name] == "query"


@pytest.mark.parametrize("state", ["running", "blocked", "waiting", "ready"])
def test_each_state_has_its_name(state: str) -> None:
    """asyncprof.state says what the task was doing."""
    table = StackTable()
    table.add([MAIN], state=state, wall_ns=1)
    (request,) = encode(table)
    assert attributes_of(request.dictionary, only_sample(request, WALL)) == {"asyncprof.state": state}


def test_absent_attributes_and_links_are_left_out() -> None:
    """A sample that has none of them has none of them, though all were asked for."""
    table = StackTable()
    table.add([MAIN], wall_ns=1)
    (request,) = encode(table, attributes=ALL)
    sample = only_sample(request, WALL)
    assert (list(sample.attribute_indices), sample.link_index) == ([], 0)
    assert len(request.dictionary.link_table) == 1


def test_a_profile_without_samples_is_left_out() -> None:
    """CPU alone, wall alone, and neither: then there is no request."""
    cpu, wall, neither = StackTable(), StackTable(), StackTable()
    cpu.add([MAIN], cpu_periods=1, period_ns=PERIOD, time=TIME)
    wall.add([MAIN], wall_ns=1)
    neither.add([MAIN])
    assert [list(profiles_of(request)) for request in encode(cpu)] == [[CPU]]
    assert [list(profiles_of(request)) for request in encode(wall)] == [[WALL]]
    assert encode(neither) == []
    assert encode(StackTable()) == []


def test_only_what_the_samples_use_is_sent() -> None:
    """Stacks that were pushed but got no weight leave no trace: check_orphans() would find them."""
    table = StackTable()
    table.stack([Frame("unused", "unused.py")])
    table.link(b"u" * 16, b"u" * 8)
    table.add([Frame("weightless")], thread_name="nobody", link=(b"v" * 16, b"v" * 8))
    table.add([MAIN], wall_ns=1)
    (request,) = encode(table)
    assert list(request.dictionary.string_table) == ["", "main", "app.py", "profile.frame.type", "wall", "nanoseconds"]


def test_samples_that_differ_only_in_unrequested_attributes_are_one() -> None:
    """Their weights and their timestamps come together; with the attribute asked for they stay apart."""
    table = StackTable()
    for number in range(4):
        table.add([MAIN], task_name=f"Task-{number}", wall_ns=10 + number, cpu_periods=1, time=TIME + 4 - number)
    (request,) = encode(table, attributes=THREAD_NAME | STATE)
    assert list(only_sample(request, WALL).values) == [46]
    assert list(only_sample(request, CPU).timestamps_unix_nano) == [TIME + 1, TIME + 2, TIME + 3, TIME + 4]
    (request,) = encode(table, attributes=TASK_NAME)
    assert sorted(sample.values[0] for sample in profiles_of(request)[WALL].samples) == [10, 11, 12, 13]
    assert len(profiles_of(request)[CPU].samples) == 4


@pytest.mark.parametrize(
    ("attributes", "samples"),
    [(THREAD_NAME, 2), (STATE, 3), (THREAD_ID, 5), (TASK_NAME, 7), (LOCAL_ROOT_NAME, 11), (0, 1)],
)
def test_each_attribute_alone_tells_samples_apart_only_when_asked_for(attributes: int, samples: int) -> None:
    """The number of samples is the number of different values of what was asked for."""
    table = StackTable()
    states = ["running", "waiting", "ready"]
    for i in range(2 * 3 * 5 * 7 * 11):
        names: dict[str, Any] = {"thread_name": f"T{i % 2}", "task_name": f"k{i % 7}", "local_root_name": f"r{i % 11}"}
        table.add([MAIN], state=states[i % 3], thread_id=1 + i % 5, wall_ns=1, **names)
    (request,) = encode(table, attributes=attributes)
    values = [sample.values[0] for sample in profiles_of(request)[WALL].samples]
    assert values == [2310 // samples] * samples


def test_names_that_the_encoder_itself_uses_are_stored_once() -> None:
    """A program may have functions called wall, count and thread.name: check_tables() would find a second copy."""
    words = [
        "samples",
        "count",
        "cpu",
        "wall",
        "nanoseconds",
        "profile.frame.type",
        "thread.name",
        "cpython",
        "running",
    ]
    table = StackTable()
    table.add(
        [Frame(word, word) for word in words], thread_name="thread.name", state="running", wall_ns=1, cpu_periods=1
    )
    (request,) = encode(table)
    assert [frame.name for frame in frames_of(request.dictionary, only_sample(request, CPU))] == words
    assert attributes_of(request.dictionary, only_sample(request, WALL))["thread.name"] == "thread.name"


def test_strings_are_exact_unicode() -> None:
    """NUL, astral and combining characters, right-to-left text and long names."""
    texts = ["a\0b", "\0", "größe", "関数", "😀" * 300, "e\u0301", "é", "שלום", "x" * 100_000, "\x7f\u0080\uffff"]
    table = StackTable()
    table.add([Frame(text, text[::-1]) for text in texts], thread_name="нить\0", wall_ns=1)
    (request,) = encode(table)
    sample = only_sample(request, WALL)
    assert [(f.name, f.filename) for f in frames_of(request.dictionary, sample)] == [(t, t[::-1]) for t in texts]
    assert attributes_of(request.dictionary, sample) == {"thread.name": "нить\0"}


def test_timestamps_are_kept_within_the_interval_and_ascend() -> None:
    """What lies outside moves to the nearest time inside."""
    table = StackTable()
    for at in (TIME + 5, LAST + 1, TIME - 1, 1, LAST + 10**12, TIME, LAST):
        table.add([MAIN], cpu_periods=1, time=at, wall_ns=1, with_event=True)
    (request,) = encode(table, timeline=True)
    expected = [TIME, TIME, TIME, TIME + 5, LAST, LAST, LAST]
    assert list(only_sample(request, CPU).timestamps_unix_nano) == expected
    assert list(only_sample(request, WALL).timestamps_unix_nano) == expected


def test_the_timeline_gives_each_value_its_time() -> None:
    """Values stay with their timestamps when these are put in order."""
    table = StackTable()
    for at, value in ((30, 3), (10, 1), (20, 2_000_000)):
        table.add([MAIN], wall_ns=value, time=TIME + at, with_event=True)
    (request,) = encode(table, timeline=True)
    sample = only_sample(request, WALL)
    assert list(zip(sample.timestamps_unix_nano, sample.values, strict=True)) == [
        (TIME + 10, 1),
        (TIME + 20, 2_000_000),
        (TIME + 30, 3),
    ]
    (request,) = encode(table, timeline=False)
    assert (list(only_sample(request, WALL).values), list(only_sample(request, WALL).timestamps_unix_nano)) == (
        [2_000_004],
        [],
    )


def test_wall_time_without_an_event_joins_the_timeline() -> None:
    """It goes to the last value, or stands alone at the end of the interval."""
    table = StackTable()
    table.add([MAIN], wall_ns=5, time=TIME + 1, with_event=True)
    table.add([MAIN], wall_ns=7, time=TIME + 2, with_event=True)
    table.add([MAIN], wall_ns=100)
    table.add([QUERY], wall_ns=9)
    (request,) = encode(table, timeline=True)
    first, second = profiles_of(request)[WALL].samples
    assert (list(first.timestamps_unix_nano), list(first.values)) == ([TIME + 1, TIME + 2], [5, 107])
    assert (list(second.timestamps_unix_nano), list(second.values)) == ([LAST], [9])


def test_a_sample_that_found_no_room_is_the_overflow_stack() -> None:
    """The one-frame stack <overflow>, with its weight."""
    table = StackTable(max_bytes=200_000)
    for number in range(20_000):
        table.add([Frame(f"f{number}")], wall_ns=1, cpu_periods=1, time=TIME)
    (request,) = encode(table)
    wall = {frames_of(request.dictionary, s): s.values[0] for s in profiles_of(request)[WALL].samples}
    assert sum(wall.values()) == 20_000
    assert wall[(Frame("<overflow>", "", 0, 0),)] == 20_000 - (len(wall) - 1)


def test_the_empty_stack_can_carry_weight() -> None:
    """Index 0 of the stack table is the empty stack."""
    table = StackTable()
    table.add([], wall_ns=3)
    (request,) = encode(table)
    assert (only_sample(request, WALL).stack_index, len(request.dictionary.stack_table)) == (0, 1)


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
