"""speedscope, Chrome and Firefox files: what their publishers allow, and all the time that was recorded."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import schemas
from recordings import MS, ODD, profiles

from otel_asyncprof.formats.chrome import to_chrome
from otel_asyncprof.formats.collapsed import to_collapsed
from otel_asyncprof.formats.gecko import to_gecko
from otel_asyncprof.formats.process_profile import process_profiles
from otel_asyncprof.formats.speedscope import to_speedscope

SAMPLES = [timed.sample for process in process_profiles(profiles()) for timed in process.samples]
STACKS = {sample.functions: sample for sample in SAMPLES}
FORMATS = [(to_speedscope, schemas.SPEEDSCOPE), (to_chrome, schemas.CHROME), (to_gecko, schemas.GECKO)]


@pytest.mark.parametrize(("encode", "schema"), FORMATS)
@pytest.mark.parametrize("mode", ["wall", "cpu"])
@pytest.mark.parametrize("timeline", [True, False])
def test_a_file_is_what_the_schema_of_its_format_allows(
    encode: Callable[..., bytes], schema: dict[str, Any], mode: str, timeline: bool
) -> None:
    """Two processes, odd names, with times and without."""
    both = [*profiles(timeline=timeline), *profiles(timeline=timeline, service="other", pid=5)]
    schemas.check(json.loads(encode(both, mode)), schema)


@pytest.mark.parametrize(("encode", "schema"), FORMATS)
def test_a_file_without_samples_is_one_of_its_format(encode: Callable[..., bytes], schema: dict[str, Any]) -> None:
    """A program that ended at once."""
    schemas.check(json.loads(encode([], "wall")), schema)


def test_collapsed_stacks_are_one_line_each_with_microseconds() -> None:
    """What the format itself uses is replaced in names: a semicolon, an end of line."""
    lines = to_collapsed(profiles()).decode().split("\n")
    assert lines == [
        "main (/app/shop.py:90);Shop.handler (/app/shop.py:20);fetch_lines (/app/orders.py:7);"
        "Connection.fetch (/env/lib/python3.12/site-packages/driver/connection.py:690) 80000",
        "worker (/app/pool.py:4) 80000",
        "main (/app/shop.py:90);Shop.handler (/app/shop.py:20);gefährlich:<b> </script> (/app/ö dir/a.py:3) 25000",
        "main (/app/shop.py:90);Shop.handler (/app/shop.py:20) 15000",
        "",
    ]
    cpu = to_collapsed(profiles(), "cpu").decode().splitlines()
    assert {line.rpartition(" ")[2] for line in cpu} == {"10000"}


def test_speedscope_has_every_stack_with_its_time_and_a_profile_for_each_state() -> None:
    """The state, for which the format has no label, is the choice of the profile."""
    document = json.loads(to_speedscope(profiles()))
    frames = document["shared"]["frames"]
    found: dict[str, dict[tuple[str, ...], int]] = {}
    for profile in document["profiles"]:
        stacks = [tuple(frames[index]["name"] for index in stack) for stack in profile["samples"]]
        found[profile["name"]] = dict(zip(stacks, profile["weights"], strict=True))
        assert profile["endValue"] == sum(profile["weights"])
    expected = {"shop 4711: wall": {stack: sample.wall_ns for stack, sample in STACKS.items()}}
    for state in ("blocked", "running", "waiting"):
        of_state = {stack: sample.wall_ns for stack, sample in STACKS.items() if sample.state == state}
        expected[f"shop 4711: wall, {state}"] = of_state
    assert found == expected
    assert {"name": ODD.name, "file": ODD.filename, "line": 3} in frames


def slices_of(document: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """The slices of each track by begin, the longest first."""
    found = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            found[event["tid"]].append(event)
    return {tid: sorted(events, key=lambda event: (event["ts"], -event["dur"])) for tid, events in found.items()}


@pytest.mark.parametrize("timeline", [True, False])
def test_chromes_slices_are_nested_and_their_leaves_hold_all_time_and_every_label(timeline: bool) -> None:
    """A leaf is a state with all that is known; above it are the frames."""
    document = json.loads(to_chrome(profiles(timeline=timeline)))
    totals: Counter[tuple[tuple[str, ...], str]] = Counter()
    labels = {}
    for events in slices_of(document).values():
        above: list[dict[str, Any]] = []
        for event in events:
            while above and event["ts"] >= above[-1]["ts"] + above[-1]["dur"] - 1e-6:
                above.pop()
            if above:
                assert event["ts"] + event["dur"] <= above[-1]["ts"] + above[-1]["dur"] + 1e-6
            if event["cat"] == "state":
                key = (tuple(outer["name"] for outer in above), event["name"])
                totals[key] += round(event["dur"] * 1000)
                labels[key] = event["args"]
            else:
                above.append(event)
    assert totals == {(sample.functions, sample.state): sample.wall_ns for sample in SAMPLES}
    query = next(sample for sample in SAMPLES if len(sample.frames) == 4)
    assert labels[query.functions, "waiting"] == {
        "thread": "MainThread",
        "thread id": 77,
        "task": "Task-2",
        "state": "waiting",
        "local root": "GET /orders",
        "trace_id": format(query.trace_id, "032x"),
        "span_id": "0b" * 8,
        "service": "shop",
        "pid": 4711,
    }


def test_chromes_tracks_are_tasks_and_threads() -> None:
    """Each has the name by which it is known."""
    document = json.loads(to_chrome(profiles()))
    names = {event["args"]["name"] for event in document["traceEvents"] if event["name"] == "thread_name"}
    assert names == {"MainThread · Task-1", "MainThread · Task-2", "pool-0"}


def gecko_stacks(document: dict[str, Any]) -> Counter[tuple[tuple[str, ...], str]]:
    """(functions, category of the leaf) -> nanoseconds, of all threads; checks every index on the way."""
    strings, categories = document["shared"]["stringArray"], document["meta"]["categories"]
    totals: Counter[tuple[tuple[str, ...], str]] = Counter()
    for thread in document["threads"]:
        for name in ("markers", "stackTable", "frameTable", "funcTable", "samples", "resourceTable", "nativeSymbols"):
            columns = [column for column in thread[name].values() if isinstance(column, list)]
            assert {len(column) for column in columns} == {thread[name]["length"]}
        assert thread["samples"]["time"] == sorted(thread["samples"]["time"])
        stacks, frames, functions = thread["stackTable"], thread["frameTable"], thread["funcTable"]
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
            path: list[int] = []
            current = stack
            while current is not None:
                path.append(stacks["frame"][current])
                assert (stacks["prefix"][current] or 0) <= current
                current = stacks["prefix"][current]
            names = tuple(strings[functions["name"][frames["func"][frame]]] for frame in reversed(path))
            totals[names, categories[frames["category"][path[0]]]["name"]] += round(weight * 1e6)
    return totals


@pytest.mark.parametrize("timeline", [True, False])
def test_firefox_has_every_stack_with_its_time_and_its_state_as_category(timeline: bool) -> None:
    """All tables fit each other."""
    document = json.loads(to_gecko(profiles(timeline=timeline)))
    assert gecko_stacks(document) == {(sample.functions, sample.state): sample.wall_ns for sample in SAMPLES}
    assert {thread["name"] for thread in document["threads"]} == {
        "MainThread · Task-1",
        "MainThread · Task-2",
        "pool-0",
    }


def test_firefox_shows_links_as_markers_over_their_time() -> None:
    """Looks that follow each other are one marker."""
    document = json.loads(to_gecko(profiles()))
    strings = document["shared"]["stringArray"]
    found = {}
    for thread in document["threads"]:
        markers = thread["markers"]
        found[thread["name"]] = [
            (strings[data["span_id"]], round(end - start))
            for data, start, end in zip(markers["data"], markers["startTime"], markers["endTime"], strict=True)
        ]
    assert found == {
        "MainThread · Task-1": [("0a" * 8, 40)],
        "MainThread · Task-2": [("0b" * 8, 80)],
        "pool-0": [],
    }
    assert document["meta"]["interval"] == 10


def test_a_task_at_two_places_at_once_has_two_tracks() -> None:
    """A task with two awaiters: its weight is split, and both halves cover the same time."""
    from native_tables import Frame, StackTable
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
    from otlp_requests import ALL, TIME, encode

    table = StackTable()
    for root in ("one", "two"):
        shared = {"task_name": "Task-1", "thread_name": "MainThread", "state": "waiting", "with_event": True}
        table.add([Frame(root), Frame("shared")], wall_ns=5 * MS, time=TIME + 10 * MS, **shared)
    data = [ProfilesData.FromString(r.SerializeToString()) for r in encode(table, attributes=ALL, timeline=True)]
    assert sorted(gecko_stacks(json.loads(to_gecko(data))).items()) == [
        ((("one", "shared"), "waiting"), 5 * MS),
        ((("two", "shared"), "waiting"), 5 * MS),
    ]
