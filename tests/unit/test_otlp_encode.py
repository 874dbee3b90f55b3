"""The encoder: what a stack table holds arrives in official protobuf messages, complete and conformant."""

from __future__ import annotations

from typing import Any

import pytest
from conformance import (
    CPU,
    WALL,
    types_of,
)
from native_tables import LOCAL_ROOT_NAME, STATE, TASK_NAME, THREAD_ID, THREAD_NAME, Frame, StackTable
from otlp_requests import (
    ALL,
    DURATION,
    HANDLER,
    LAST,
    LINK,
    MAIN,
    PERIOD,
    QUERY,
    RESOURCE,
    SCOPE_SCHEMA_URL,
    TIME,
    attributes_of,
    encode,
    frames_of,
    link_of,
    only_sample,
    profiles_of,
)


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
    table = StackTable(max_bytes=1_000_000)
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
