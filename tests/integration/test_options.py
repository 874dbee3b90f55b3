"""Every option has the same effect from the environment, from a configuration file and from code: a table of them."""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conformance import CPU, types_of
from integration.applications import Ended, environment, run, run_all
from integration.certificates import make_certificates
from integration.collectors import Collector, GrpcCollector, HttpCollector, HttpsCollector

from otel_asyncprof import ProfilerConfig
from otel_asyncprof._config import OPTIONS
from otel_asyncprof._declarative import BLOCK_PATHS
from otel_asyncprof.export.file import read_profiles
from otel_asyncprof.formats.stack_sample import StackSample, stack_samples

WAYS = ("environment", "file", "instrument", "Profiler")
WITH_ANY_FILE = ("OTEL_CONFIG_FILE is set;", "Attempting to instrument while already instrumented")
NO_THREAD_CONTEXT = "the thread context is not published: this version of CPython"
BLOCKS = {"otlp_proto_http": "otlp_http", "otlp": "otlp_grpc"}


@dataclass(frozen=True)
class Seen:
    """One process that ran with some options: what came of it."""

    ended: Ended
    collectors: dict[str, Collector]
    folder: Path

    @property
    def told(self) -> dict[str, Any]:
        """What the program saw of itself."""
        told: dict[str, Any] = json.loads(self.ended.stdout)
        return told

    @property
    def lines(self) -> list[str]:
        """What was logged, but for what OpenTelemetry says whenever it starts an instrumentation out of a file."""
        expected = (*WITH_ANY_FILE, *([NO_THREAD_CONTEXT] if sys.version_info < (3, 12) else []))
        return [line for line in self.ended.lines if not line.startswith(expected)]

    @property
    def reached(self) -> str:
        """The collector at which profiles have arrived."""
        return " ".join(name for name, collector in self.collectors.items() if collector.profiles)

    @property
    def requests(self) -> list[Any]:
        """The profiles that have arrived anywhere."""
        return [request for collector in self.collectors.values() for request in collector.profiles]

    @property
    def samples(self) -> list[StackSample]:
        """What is in them."""
        return stack_samples(request.SerializeToString() for request in self.requests)

    @property
    def header(self) -> Any:
        """The headers of the first profile."""
        return next(c.arrivals[0].headers for c in self.collectors.values() if c.arrivals)

    def profiles(self, *, cpu: bool) -> list[Any]:
        """The CPU profiles, or the others."""
        return [
            profile
            for request in self.requests
            for profile in request.resource_profiles[0].scope_profiles[0].profiles
            if (types_of(request.dictionary, profile) == CPU) is cpu
        ]

    def has(self, span: str, attribute: str) -> bool:
        """Whether a span of the program got this attribute."""
        return attribute in self.told["spans"][span]["attributes"]


def periods(seen: Seen) -> set[int]:
    """Of CPU time."""
    return {profile.period for profile in seen.profiles(cpu=True)}


def sees_all_tasks(seen: Seen) -> bool:
    """Whether a suspended task is looked at in nearly every tick."""
    return bool(seen.told["window"] < 2)


def exports_often(seen: Seen) -> bool:
    """Whether more was sent than one request in ten seconds and one at the end."""
    seconds = sum(profile.duration_nano for profile in seen.profiles(cpu=False)) / 1e9
    return len(seen.requests) > 1 + seconds / 10


def longest_stack_is_cut(seen: Seen) -> bool:
    """Whether the recursion is in no stack as a whole."""
    return max(len(sample.frames) for sample in seen.samples) == 16


def link_of_query(seen: Seen) -> set[str]:
    """The names of the spans to which the slow query's samples are linked."""
    names = {span["id"]: name for name, span in seen.told["spans"].items()}
    return {names.get(s.span_id, "none") for s in seen.samples if "until_seen" in s.functions and s.span_id in names}


def links_to_unsampled(seen: Seen) -> bool:
    """Whether a sample is linked to a span that was not sampled and so is not among those that were exported."""
    sampled = {span["id"] for span in seen.told["spans"].values()}
    return any(sample.span_id and sample.span_id not in sampled for sample in seen.samples)


def has_loop_frames(seen: Seen) -> bool:
    """Whether asyncio's machinery is in the stacks of tasks."""
    return any({"BaseEventLoop.run_forever", "request"} <= set(sample.functions) for sample in seen.samples)


def attributes(seen: Seen) -> set[str]:
    """Which of the attributes of samples are there."""
    keys = {"thread_name", "thread_id", "state", "task_name", "local_root_name"}
    return {key for key in keys for sample in seen.samples if getattr(sample, key) is not None}


def has_timeline(seen: Seen) -> bool:
    """Whether wall samples have timestamps."""
    return any(sample.timestamps_unix_nano for profile in seen.profiles(cpu=False) for sample in profile.samples)


def deadline_is_far(seen: Seen) -> bool:
    """Whether the call could have taken longer than by default."""
    left = next(c.arrivals[0].seconds_left for c in seen.collectors.values() if c.arrivals)
    return left is not None and left > 60


def shows_thread_context(seen: Seen) -> bool:
    """Whether readers outside find it, or one line says that this interpreter cannot give it."""
    told = [line for line in seen.ended.lines if line.startswith(NO_THREAD_CONTEXT)]
    return bool(seen.told["thread context"]) or (sys.version_info < (3, 12) and len(told) == 1)


def is_in_file(seen: Seen) -> bool:
    """Whether profiles were written to the file of this run."""
    file = seen.folder / "profiles"
    return file.exists() and bool(stack_samples(read_profiles(file)))


@dataclass(frozen=True)
class Row:
    """A value that is not the default, as text and in Python; what comes of it, and what of the default."""

    scenario: str
    option: str
    text: str
    value: Any
    effect: Callable[[Seen], object]
    changed: object
    usual: object


def rows(files: Path, urls: dict[str, str]) -> list[Row]:
    """One for each option, at least."""
    grpc = urls["grpc"].removeprefix("http://")
    https = urls["https"] + "/v1development/profiles"
    return [
        Row("https", "rate", "50", 50, periods, {20_000_000}, {10_000_000}),
        Row("https", "cpu_budget", "1", 1.0, sees_all_tasks, True, False),
        Row("https", "interval", "300ms", 0.3, exports_often, True, False),
        Row("https", "max_frames", "16", 16, longest_stack_is_cut, True, False),
        Row("https", "link", "local_root", "local_root", link_of_query, {"request"}, {"slow query"}),
        Row("https", "link_unsampled", "true", True, links_to_unsampled, True, False),
        Row("https", "loop_frames", "true", True, has_loop_frames, True, False),
        Row(
            *("https", "sample_attributes", "thread.id,asyncio.task.name", ["thread.id", "asyncio.task.name"]),
            *(attributes, {"thread_id", "task_name"}, {"thread_name", "state"}),
        ),
        Row("https", "timeline", "true", True, has_timeline, True, False),
        Row("https", "slow_span_threshold", "0", 0, lambda s: s.has("quick call", "code.stacktrace"), True, False),
        Row("https", "caller_kinds", "server", ["server"], lambda s: s.has("request", "code.stacktrace"), True, False),
        Row("https", "profile_id", "no", False, lambda s: s.has("request", "pyroscope.profile.id"), False, True),
        Row("https", "exit_signals", "off", False, lambda s: s.told["catches SIGTERM"], False, True),
        Row("https", "thread_context", "true", True, shows_thread_context, True, False),
        Row("https", "exporter", "otlp_proto_http", "otlp_proto_http", lambda s: s.reached, "https", "http"),
        Row("https", "otlp_endpoint", https, https, lambda s: s.reached, "https", "http"),
        Row("https", "otlp_headers", "x-key=a%20b", {"x-key": "a b"}, lambda s: s.header.get("x-key"), "a b", None),
        Row("https", "otlp_compression", "gzip", "gzip", lambda s: s.header.get("content-encoding"), "gzip", None),
        *(
            Row("https", option, str(files / name), str(files / name), lambda s: s.reached, "https", "http")
            for option, name in {
                "otlp_certificate": "server.crt",
                "otlp_client_certificate": "client.crt",
                "otlp_client_key": "client.key",
            }.items()
        ),
        Row("grpc", "otlp_protocol", "grpc", "grpc", lambda s: s.reached, "grpc", "http"),
        Row("grpc", "otlp_endpoint", grpc, grpc, lambda s: s.reached, "grpc", "http"),
        Row("grpc", "otlp_insecure", "true", True, lambda s: s.reached, "grpc", "http"),
        Row("grpc", "otlp_timeout", "3000", 3000, deadline_is_far, True, False),
        Row("file", "exporter", "file", "file", is_in_file, True, False),
        Row("file", "file", "{folder}/profiles", "{folder}/profiles", is_in_file, True, False),
        Row("off", "enabled", "false", False, lambda s: (s.told["running"], s.reached), (False, ""), (True, "http")),
    ]


def with_folder(value: Any, folder: Path) -> Any:
    """A value that names the folder of its run."""
    return value.replace("{folder}", str(folder)) if isinstance(value, str) else value


def in_file(options: dict[str, Any]) -> str:
    """A configuration file; settings of an exporter stand where the schema has them."""
    plain = {name: value for name, value in options.items() if name == "file" or name not in BLOCK_PATHS}
    block: dict[str, Any] = {}
    for name in options.keys() - plain.keys():
        *outer, inner = BLOCK_PATHS[name].split(".")
        value = options[name]
        if name == "otlp_headers":
            value = [{"name": key, "value": text} for key, text in value.items()]
        (block.setdefault(outer[0], {}) if outer else block)[inner] = value * 1000 if name == "otlp_timeout" else value
    if block:
        plain["exporter"] = {BLOCKS[plain.get("exporter", "otlp")]: block}
    configuration = {"file_format": "1.0", "instrumentation/development": {"python": {"asyncprof": plain}}}
    return json.dumps(configuration)  # which is YAML too


def start(way: str, table: list[Row], folder: Path, variables: dict[str, str]) -> Ended:
    """Runs the program with the options of some rows, given in one of the ways."""
    length = "long" if not table or table[0].scenario == "https" else "short"
    if way == "environment":
        given = {OPTIONS[row.option].variable: with_folder(row.text, folder) for row in table}
        return run("options.py", length, env=variables | given)
    options = {row.option: with_folder(row.value, folder) for row in table}
    if way == "file":
        file = folder / "otel.yaml"
        file.write_text(in_file(options), encoding="utf-8")
        return run("options.py", length, env=variables | {"OTEL_CONFIG_FILE": str(file)})
    return run("options.py", length, way, json.dumps(options), env=variables, launch="plain")


@dataclass(frozen=True)
class Runs:
    """The table, and the run of each scenario in each way; that with no option is the usual one."""

    rows: list[Row]
    usual: Seen
    seen: dict[tuple[str, str], Seen]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """A collector of each kind for each process."""
    files = tmp_path_factory.mktemp("certificates")
    make_certificates(files)
    scenarios = list(dict.fromkeys(row.scenario for row in rows(files, dict.fromkeys(("http", "https", "grpc"), ""))))
    places = [("", ""), *((way, scenario) for way in WAYS for scenario in scenarios)]
    seen: dict[tuple[str, str], Seen] = {}
    tables = {}
    with ExitStack() as stack:
        jobs = []
        for place in places:
            collectors = {"http": HttpCollector(), "https": HttpsCollector(files), "grpc": GrpcCollector()}
            for collector in collectors.values():
                stack.enter_context(collector)
            folder = tmp_path_factory.mktemp("run")
            tables[place] = rows(files, {name: collector.endpoint for name, collector in collectors.items()})
            variables = environment(collectors["http"], OTEL_TRACES_EXPORTER="none")
            del variables["OTEL_ASYNCPROF_INTERVAL"]
            way, scenario = place
            table = [row for row in tables[place] if row.scenario == scenario]
            jobs.append(functools.partial(start, way or "environment", table, folder, variables))
            seen[place] = Seen(Ended(0, 0, "", "", 0.0), collectors, folder)
        for place, ended in zip(places, run_all(*jobs), strict=True):
            seen[place] = dataclasses.replace(seen[place], ended=ended)
        yield Runs(tables["", ""], seen.pop(("", "")), seen)


def test_every_option_is_in_the_table(tmp_path: Path) -> None:
    """A new one needs a row, with an effect that can be seen and a value that is not the default."""
    table = rows(tmp_path, dict.fromkeys(("http", "https", "grpc"), "http://c"))
    assert {row.option for row in table} == {field.name for field in dataclasses.fields(ProfilerConfig)}
    defaults = {field.name: field.default for field in dataclasses.fields(ProfilerConfig)}
    assert [row.option for row in table if row.value == defaults[row.option]] == []


@pytest.mark.parametrize("way", WAYS)
def test_every_option_has_its_effect(runs: Runs, way: str) -> None:
    """Nothing is said about it in the log, and the application goes on as ever."""
    of_way = {scenario: seen for (given, scenario), seen in runs.seen.items() if given == way}
    assert {scenario: (s.ended.status, s.lines) for scenario, s in of_way.items()} == dict.fromkeys(of_way, (0, []))
    effects = {(row.scenario, row.option): row.effect(of_way[row.scenario]) for row in runs.rows}
    assert effects == {(row.scenario, row.option): row.changed for row in runs.rows}


def test_without_the_options_none_of_the_effects_is_there(runs: Runs) -> None:
    """Else the table would show nothing."""
    assert (runs.usual.ended.status, runs.usual.lines) == (0, [])
    effects = {(row.scenario, row.option): row.effect(runs.usual) for row in runs.rows}
    assert effects == {(row.scenario, row.option): row.usual for row in runs.rows}
    assert [row.option for row in runs.rows if row.usual == row.changed] == []
