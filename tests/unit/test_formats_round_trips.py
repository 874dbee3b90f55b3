"""Recordings made at random, at times as they are today: what a format can hold comes back from its file."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest
from native_tables import Frame as Written
from native_tables import StackTable
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from otlp_requests import ALL, encode
from profile_proto import Profile, frames_by_location, labels_of
from recordings import resource

from otel_asyncprof.formats.chrome import to_chrome
from otel_asyncprof.formats.collapsed import to_collapsed
from otel_asyncprof.formats.gecko import to_gecko
from otel_asyncprof.formats.otlp import to_otlp
from otel_asyncprof.formats.pprof import to_pprof
from otel_asyncprof.formats.process_profile import ProcessProfile, process_profiles
from otel_asyncprof.formats.recording import Recording, read_recording, to_recording
from otel_asyncprof.formats.speedscope import to_speedscope
from otel_asyncprof.formats.stack_sample import Frame, StackSample

SEEDS = range(8)
NOW = 1_796_000_123_456_789_011  # ns since 1970
SECOND = 1_000_000_000
NAMES = ["main", "Größe.<lambda>", "<módulo>", "a b", 'quo"te\\', "\U0001f600", "x" * 300, "tab\tulator"]
STATES = ["running", "waiting", "ready", "blocked", ""]
LOST_US = 1  # of each slice: Chrome's times are whole microseconds


class Seen(NamedTuple):
    """All that tells a sample from another."""

    frames: tuple[Frame, ...]
    process: str
    thread: str | None
    thread_id: int | None
    task: str | None
    state: str | None
    local_root: str | None
    trace_id: int
    span_id: int


def identity(process: ProcessProfile, sample: StackSample) -> Seen:
    """What is to come back of a sample beside its values."""
    of_thread = (sample.thread_name, sample.thread_id, sample.task_name)
    return Seen(
        sample.frames, process.name, *of_thread, sample.state, sample.local_root_name, sample.trace_id, sample.span_id
    )


def of_labels(frames: Iterable[Frame], labels: dict[str, Any]) -> Seen:
    """The same out of a file's labels, all of which have to be known here."""
    left = dict(labels)
    process = f"{left.pop('service')} {left.pop('pid')}"
    ids = [int(left.pop(key, "0"), 16) for key in ("trace_id", "span_id")]
    plain = [left.pop(key, None) for key in ("thread", "thread id", "task", "state", "local root")]
    assert left == {}
    return Seen(tuple(frames), process, *plain, *ids)


def made(rng: random.Random, *, pid: int, timeline: bool) -> list[ProfilesData]:
    """One process: threads and tasks, of which each does one thing after the other, with and without spans."""
    table = StackTable()
    frames = [Written(rng.choice(NAMES), f"/app/{rng.choice('abc')} ö.py", rng.randrange(1, 9999), rng.randrange(1, 99))
              for _ in range(12)]  # fmt: skip
    links = [(rng.randbytes(16), rng.randbytes(8)) for _ in range(4)] + [None, None]
    for _ in range(rng.randint(1, 6)):
        place = {
            "thread_name": rng.choice(["MainThread", "pool-0", ""]),
            "thread_id": rng.choice([0, 77, (1 << 47) + 1]),
            "task_name": rng.choice(["", "Task-1", "größte;Aufgabe"]),
            "local_root_name": rng.choice(["", "GET /orders/{id}"]),
        }
        time = NOW + rng.randrange(SECOND)
        for _ in range(rng.randint(1, 12)):
            stack = [rng.choice(frames) for _ in range(rng.randint(1, 7))]
            wall_ns = rng.randrange(1_000, 30_000_000)
            time += wall_ns + rng.choice([0, 0, 3_000_000])
            state = rng.choice(STATES)
            cpu = {"cpu_periods": 1, "period_ns": 10_000_000} if state == "running" else {}
            observed = {"state": state, "wall_ns": wall_ns, "time": time, "with_event": True, **cpu}
            table.add(stack, link=rng.choice(links), **place, **observed)
    options = {"time": NOW, "duration": 10 * SECOND, "resource": resource(pid=pid).SerializeToString()}
    requests = encode(table, attributes=ALL, timeline=timeline, **options)
    return [ProfilesData.FromString(request.SerializeToString()) for request in requests]


@pytest.fixture(params=[(seed, timeline) for seed in SEEDS for timeline in (True, False)], ids=str)
def profiles(request: pytest.FixtureRequest) -> list[ProfilesData]:
    """Two processes that know the same names."""
    seed, timeline = request.param
    rng = random.Random(seed)
    return [*made(rng, pid=1, timeline=timeline), *made(rng, pid=22, timeline=timeline)]


def samples(profiles: list[ProfilesData]) -> Iterator[tuple[Seen, StackSample]]:
    """What was recorded."""
    for process in process_profiles(profiles):
        for timed in process.samples:
            yield identity(process, timed.sample), timed.sample


def sums(pairs: Iterable[tuple[Any, int]]) -> Counter[Any]:
    """Sums by key, of which none is 0."""
    found: Counter[Any] = Counter()
    for key, value in pairs:
        found[key] += value
    return +found


def test_otlp_gives_back_every_message(profiles: list[ProfilesData]) -> None:
    """As JSON and as protobuf."""
    assert read_recording(to_recording(Recording(profiles))).profiles == profiles
    assert read_recording(to_otlp(profiles)).profiles == profiles


def test_pprof_gives_back_every_label_and_both_times(profiles: list[ProfilesData]) -> None:
    """Frames with files and lines, thread, task, state, local root, link and process."""
    file = Profile.FromString(gzip.decompress(to_pprof(profiles)))
    frames = frames_by_location(file)
    found = []
    for sample in file.sample:
        seen = of_labels((frames[number] for number in reversed(sample.location_id)), labels_of(file, sample))
        found.append((seen, tuple(sample.value)[1:]))
    assert found == [(seen, (sample.cpu_ns, sample.wall_ns)) for seen, sample in samples(profiles)]


def test_speedscope_gives_back_the_time_of_every_stack_in_every_state(profiles: list[ProfilesData]) -> None:
    """Of each process; the format has no first lines and no labels."""
    document = json.loads(to_speedscope(profiles))
    frames = [(frame["name"], frame["file"], frame["line"]) for frame in document["shared"]["frames"]]
    found = sums(
        ((profile["name"], tuple(frames[number] for number in stack)), weight)
        for profile in document["profiles"]
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True)
    )
    expected: Counter[Any] = Counter()
    for seen, sample in samples(profiles):
        stack = tuple((frame.function, frame.file, frame.line) for frame in seen.frames)
        for name in filter(None, (f"{seen.process}: wall", seen.state and f"{seen.process}: wall, {seen.state}")):
            expected[name, stack] += sample.wall_ns
    assert found == +expected


def test_collapsed_stacks_give_back_the_time_of_every_stack(profiles: list[ProfilesData]) -> None:
    """In microseconds."""
    lines = to_collapsed(profiles).decode().splitlines()
    found = {stack: int(number) for stack, _, number in (line.rpartition(" ") for line in lines)}
    expected = sums(
        (";".join(f"{f.function} ({f.file}:{f.line})".replace(";", ":") for f in seen.frames), sample.wall_ns)
        for seen, sample in samples(profiles)
    )
    assert found == {stack: round(total / 1000) for stack, total in expected.items() if total}


def test_chrome_gives_back_every_label_and_the_time_in_slices_one_inside_the_other(
    profiles: list[ProfilesData],
) -> None:
    """None reaches beyond the one that holds it, not by a nanosecond: Perfetto would drop it."""
    tracks = defaultdict(list)
    for event in json.loads(to_chrome(profiles))["traceEvents"]:
        if event["ph"] == "X":
            assert isinstance(event["ts"], int)
            tracks[event["pid"], event["tid"]].append(event)
    found: Counter[Seen] = Counter()
    n_slices: Counter[Seen] = Counter()
    for events in tracks.values():
        above: list[dict[str, Any]] = []
        for event in events:  # in the order of the file: as they begin, the outer ones first
            while above and event["ts"] >= above[-1]["ts"] + above[-1]["dur"]:
                above.pop()
            assert not above or event["ts"] + event["dur"] <= above[-1]["ts"] + above[-1]["dur"]
            if event["cat"] != "state":
                above.append(event)
                continue
            place = (Frame(each["name"], each["args"]["file"], each["args"]["line"], each["args"]["first_line"])
                     for each in above)  # fmt: skip
            seen = of_labels(place, event["args"])
            found[seen] += event["dur"]
            n_slices[seen] += 1
    expected = sums((seen, sample.wall_ns) for seen, sample in samples(profiles))
    assert found.keys() == expected.keys()
    for seen, total in expected.items():
        assert abs(found[seen] - total / 1000) <= LOST_US * n_slices[seen]


def test_firefox_gives_back_tracks_stacks_states_and_links(profiles: list[ProfilesData]) -> None:
    """Milliseconds of each stack with its category, and of each link as markers."""
    document = json.loads(to_gecko(profiles))
    strings, files = document["shared"]["stringArray"], document["shared"]["sources"]["filename"]
    categories = [category["name"] for category in document["meta"]["categories"]]
    found: Counter[Any] = Counter()
    links: Counter[Any] = Counter()
    for thread in document["threads"]:
        track = (thread["processName"], thread["name"].partition(" (")[0])
        frames, functions, stacks = thread["frameTable"], thread["funcTable"], thread["stackTable"]
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"], strict=True):
            numbers: list[int] = []
            while stack is not None:
                numbers.append(stacks["frame"][stack])
                stack = stacks["prefix"][stack]
            place = tuple(
                Frame(
                    strings[functions["name"][function]],
                    strings[files[functions["source"][function]]],
                    frames["line"][number],
                    functions["lineNumber"][function],
                )
                for number in reversed(numbers)
                for function in [frames["func"][number]]
            )
            found[*track, place, categories[frames["category"][numbers[0]]]] += round(weight * 1e6)
        for data in thread["markers"]["data"]:
            links[*track, int(strings[data["trace_id"]], 16), int(strings[data["span_id"]], 16)] += 1
    expected: Counter[Any] = Counter()
    expected_links = set()
    for seen, sample in samples(profiles):
        name = " · ".join(part for part in (seen.thread, seen.task) if part) or "samples"
        expected[seen.process, name, seen.frames, seen.state or "Other"] += sample.wall_ns
        if seen.span_id and sample.wall_ns:
            expected_links.add((seen.process, name, seen.trace_id, seen.span_id))
    assert found == +expected
    assert set(links) == expected_links
