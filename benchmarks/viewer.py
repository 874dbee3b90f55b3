"""How fast the viewer receives and answers, and how much memory it needs: `python benchmarks/viewer.py [--stored 1GB]`.

The viewer runs in a process of its own, on a database in a temporary folder; this process sends and asks. Profiles have
random stacks: real ones repeat far more. Prints one line for each measure, with its limit where it has one.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from urllib.parse import urlencode, urlsplit

from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

MS = 1_000_000
TICK_NS = 10 * MS
REPETITIONS = 5
QUIET_SECONDS = 5.0
PROTOBUF = {"Content-Type": "application/x-protobuf"}


Time = tuple[float, float]  # milliseconds: by the clock, and of the viewer's CPU


class Viewer:
    """A viewer in a process of its own."""

    def __init__(self, database: str, limit: str) -> None:
        command = [sys.executable, "-m", "otel_asyncprof", "serve", "--grpc-port", "0", "--http-port", "0"]
        options = [
            "--ui-port",
            "0",
            "--db",
            database,
            "--db-max-size",
            limit,
            "--ready-json",
            "--until-stdin-ends",
            "-q",
        ]
        self._process = subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        addresses = json.loads(self._process.stdout.readline())
        self._page = urlsplit(addresses["page"])
        self.receiver: str = addresses["http"]
        self._otlp = urlsplit(self.receiver)

    def send(self, path: str, body: bytes) -> float:
        """Seconds that the sender waited."""
        begun = time.perf_counter()
        while True:
            connection = http.client.HTTPConnection(self._otlp.hostname or "", self._otlp.port, timeout=120)
            connection.request("POST", path, body, PROTOBUF)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            if answer.status == 200:
                return time.perf_counter() - begun
            assert answer.status == 503, answer.status
            time.sleep(0.1)

    def ask(self, path: str, **query: object) -> bytes:
        """An answer of the API."""
        connection = http.client.HTTPConnection(self._page.hostname or "", self._page.port, timeout=300)
        connection.request("GET", f"{path}?{urlencode(query)}")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert answer.status == 200, (path, answer.status, body[:500])
        return body

    def milliseconds(self, path: str, **query: object) -> tuple[Time, Time]:
        """Of the first answer, and the medians of those after it."""
        times = []
        for _ in range(REPETITIONS + 1):
            begun = self.now()
            self.ask(path, **query)
            times.append(self.since(begun))
        wall, cpu = (sorted(part)[REPETITIONS // 2] for part in zip(*times[1:], strict=True))
        return times[0], (wall, cpu)

    def now(self) -> Time:
        """The time, and the CPU time of the viewer: on a busy machine only that says anything."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return time.perf_counter() * 1000, (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def since(self, begun: Time) -> Time:
        """Milliseconds since then."""
        wall, cpu = self.now()
        return wall - begun[0], cpu - begun[1]

    def settled(self, samples: int) -> None:
        """Waits until so many observations are stored."""
        while json.loads(self.ask("/api/status"))["samples"] < samples:
            time.sleep(0.02)

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory of the process now, and the most that it ever was."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        kib = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines) if value.split()}
        return int(kib["VmRSS"]) / 1024, int(kib["VmHWM"]) / 1024

    def stop(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def identifiers(trace: int, span: int = 0) -> tuple[bytes, bytes]:
    """Ids of a trace and of one of its spans."""
    return (trace + 1).to_bytes(16), ((trace + 1 << 24) + span + 1).to_bytes(8)


def traces(numbers: range, begin_ns: int, spans: int, depth: int = 4) -> bytes:
    """Traces of so many spans each, a tree that is this deep, with a query on every other span."""
    message = TracesData()
    of_resource = message.resource_spans.add()
    of_resource.resource.attributes.add(key="service.name").value.string_value = "bench"
    scope = of_resource.scope_spans.add()
    chance = random.Random(1)
    for trace in numbers:
        start = begin_ns + trace * MS
        duration = chance.randrange(20, 2000) * MS if spans < 1000 else 10_000 * MS
        for number in range(spans):
            trace_id, span_id = identifiers(trace, number)
            begin = start + duration * number // (spans + 1)
            length = duration if number == 0 else duration * depth // (spans + 1)
            span = scope.spans.add(
                trace_id=trace_id, span_id=span_id, name=f"op {trace % 20}" if number == 0 else "SELECT"
            )
            span.start_time_unix_nano, span.end_time_unix_nano = begin, begin + length
            span.kind = 2 if number == 0 else 3
            if number:
                parent = number - 1 if number % depth else 0
                span.parent_span_id = identifiers(trace, parent)[1]
                span.attributes.add(
                    key="db.query.text"
                ).value.string_value = f"SELECT * FROM t{number % 7} WHERE id = {trace}"
    return message.SerializeToString()


class Profile:
    """Builds one profile message with random stacks."""

    def __init__(self, n_functions: int = 2000, seed: int = 1) -> None:
        self._chance = random.Random(seed)
        self.message = ProfilesData()
        tables = self.message.dictionary
        tables.string_table.extend(["", "wall", "nanoseconds", "asyncprof.state", "thread.name", "asyncio.task.name"])
        for table in ("mapping", "function", "location", "link", "attribute", "stack"):
            getattr(tables, f"{table}_table").add()
        for number in range(n_functions):
            tables.string_table.extend([f"Class{number}.method", f"/app/package/module_{number % 200}.py"])
            n = len(tables.string_table)
            tables.function_table.add(name_strindex=n - 2, filename_strindex=n - 1, start_line=number % 300 + 1)
            tables.location_table.add().lines.add(function_index=number + 1, line=number % 300 + 5)
        for state in ("running", "waiting", "ready", "blocked"):
            tables.attribute_table.add(key_strindex=3).value.string_value = state
        tables.attribute_table.add(key_strindex=4).value.string_value = "MainThread"
        of_resource = self.message.resource_profiles.add()
        of_resource.resource.attributes.add(key="service.name").value.string_value = "bench"
        self._profile = of_resource.scope_profiles.add().profiles.add()
        self._profile.period_type.type_strindex, self._profile.period_type.unit_strindex = 1, 2
        self._functions = n_functions

    def stacks(self, n: int, depth: int = 20) -> None:
        """Random stacks that share their roots, as requests do."""
        for _ in range(n):
            path = [1, 2, 3] + [self._chance.randrange(4, self._functions) for _ in range(depth - 3)]
            self.message.dictionary.stack_table.add(location_indices=reversed(path))

    def sample(self, stack: int, trace: int, span: int, task: str, state: int, ends: list[int]) -> None:
        """One stack with its observations."""
        tables = self.message.dictionary
        trace_id, span_id = identifiers(trace, span)
        tables.link_table.add(trace_id=trace_id, span_id=span_id)
        tables.string_table.append(task)
        tables.attribute_table.add(key_strindex=5).value.string_value = task
        self._profile.samples.add(
            stack_index=stack,
            link_index=len(tables.link_table) - 1,
            attribute_indices=[state, 5, len(tables.attribute_table) - 1],
            values=[TICK_NS] * len(ends),
            timestamps_unix_nano=ends,
        )


def many_samples(begin_ns: int, trace: int, samples: int, per_sample: int, stacks: int, seed: int) -> bytes:
    """What one process sends: so many observations, each stack several times."""
    profile = Profile(seed=seed)
    profile.stacks(stacks)
    for number in range(samples // per_sample):
        begin = begin_ns + number * MS
        ends = [begin + TICK_NS * (tick + 1) for tick in range(per_sample)]
        profile.sample(number % stacks + 1, trace + number % 500, 0, f"Task-{number}", number % 4 + 1, ends)
    return profile.message.SerializeToString()


def ingestion(viewer: Viewer, begin_ns: int) -> list[str]:
    """200,000 observations in ten messages."""
    messages = [many_samples(begin_ns, 0, 20_000, 5, 2000, seed) for seed in range(10)]
    viewer.send("/v1development/profiles", many_samples(begin_ns, 0, 1000, 5, 200, 99))
    viewer.settled(1000)
    begun = viewer.now()
    waited = [viewer.send("/v1development/profiles", message) for message in messages]
    viewer.settled(201_000)
    wall, cpu = viewer.since(begun)
    size = len(messages[0]) / 1024
    return [
        line("ms to receive and store 20,000 samples", (wall / 10, cpu / 10), 1000),
        line(f"ms that a sender waits for a message of 20,000 ({size:,.0f} KiB)", (1000 * median(waited), None), None),
    ]


def lists(viewer: Viewer, begin_ns: int) -> list[str]:
    """10,000 traces."""
    for first in range(0, 10_000, 500):
        viewer.send("/v1/traces", traces(range(first, first + 500), begin_ns, 5))
    while json.loads(viewer.ask("/api/status"))["traces"] < 10_000:
        time.sleep(0.1)
    wait_for_summaries(viewer)
    page, scatter = viewer.milliseconds("/api/traces", limit=100), viewer.milliseconds("/api/traces", limit=10_000)
    queries = viewer.milliseconds("/api/queries")
    return [
        line("ms: list of 10,000 traces, first 100 rows and scatter", page[1], 200),
        line("ms: list of 10,000 traces, all rows", scatter[1], None),
        line("ms: slow queries, 40,000 runs", queries[1], None),
    ]


def wait_for_summaries(viewer: Viewer) -> None:
    """Until every row of the list has its split."""
    while any(row["split"] is None for row in json.loads(viewer.ask("/api/traces", limit=10_000))["traces"]):
        time.sleep(0.2)


def wait_until_quiet(viewer: Viewer) -> None:
    """Until nothing has changed for a while: summaries are worked out, and what takes long lies ready."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        revision = json.loads(viewer.ask("/api/status"))["revision"]
        if revision != seen:
            seen, since = revision, time.monotonic()
        time.sleep(0.2)


def large_trace(viewer: Viewer, begin_ns: int) -> list[str]:
    """5,000 spans in 10 s, looked at 100 times a second in four tasks: asked for at once, and after the last change."""
    trace_id = send_large_trace(viewer, begin_ns, 20_000)
    at_once, again = viewer.milliseconds(f"/api/traces/{trace_id}")
    lanes = viewer.milliseconds(f"/api/traces/{trace_id}/lanes")
    trace_id = send_large_trace(viewer, begin_ns, 20_001)
    wait_until_quiet(viewer)
    settled, _ = viewer.milliseconds(f"/api/traces/{trace_id}")
    return [
        line("ms: trace of 5,000 spans, the first time, asked for while it arrives", at_once, None),
        line("ms: trace of 5,000 spans, the first time", settled, 150),
        line("ms: trace of 5,000 spans", again, 150),
        line("ms: its lanes", lanes[1], None),
    ]


def send_large_trace(viewer: Viewer, begin_ns: int, number: int) -> str:
    """The id of a new one."""
    viewer.send("/v1/traces", traces(range(number, number + 1), begin_ns, 5000, depth=6))
    profile = Profile(seed=7)
    profile.stacks(300)
    start = begin_ns + number * MS
    for tick in range(1000):
        for task in range(4):
            span = max(min(tick * 5 - task, 4999), 0)
            profile.sample(tick % 300 + 1, number, span, f"Task-{task}", tick % 4 + 1, [start + TICK_NS * (tick + 1)])
    before = json.loads(viewer.ask("/api/status"))["samples"]
    viewer.send("/v1development/profiles", profile.message.SerializeToString())
    viewer.settled(before + 4000)
    return identifiers(number)[0].hex()


def flame(viewer: Viewer, begin_ns: int) -> list[str]:
    """A tree of some 20,000 nodes."""
    number = 30_000
    viewer.send("/v1/traces", traces(range(number, number + 1), begin_ns, 5))
    profile = Profile(seed=11)
    profile.stacks(1180)
    start = begin_ns + number * MS
    for stack in range(1180):
        profile.sample(stack + 1, number, 0, f"Task-{stack % 50}", stack % 4 + 1, [start + TICK_NS + stack * 10_000])
    before = json.loads(viewer.ask("/api/status"))["samples"]
    viewer.send("/v1development/profiles", profile.message.SerializeToString())
    viewer.settled(before + 1180)
    asked = {"trace": identifiers(number)[0].hex(), "scope": "trace", "prune": 0, "weight": "task"}
    nodes = len(json.loads(viewer.ask("/api/stacks", **asked))["nodes"]["parent"])
    times = viewer.milliseconds("/api/stacks", **asked)
    everything = viewer.milliseconds("/api/stacks")
    return [
        line(f"ms: flame tree of {nodes:,} nodes", times[1], 150),
        line("ms: flame tree of everything stored, 200,000 samples", everything[1], 1000),
    ]


def memory_line(viewer: Viewer, when: str) -> str:
    """Memory now and at most, with the limit for both."""
    now, most = viewer.memory_mib()
    return f"{now:10,.0f} {most:10,.0f}   at most  MiB of memory {when} (at most 200)"


def memory(viewer: Viewer, begin_ns: int, sizes: list[int]) -> list[str]:
    """Resident memory after the list and a tree were shown, at stored sizes."""
    lines = []
    seed = 100
    for size in sizes:
        while json.loads(viewer.ask("/api/status"))["size_bytes"] < size:
            viewer.send("/v1development/profiles", many_samples(begin_ns, 40_000 + seed * 500, 20_000, 5, 2000, seed))
            viewer.send("/v1/traces", traces(range(40_000 + seed * 500, 40_500 + seed * 500), begin_ns, 20))
            seed += 1
        viewer.ask("/api/traces")
        viewer.ask("/api/queries")
        viewer.ask("/api/stacks")
        lines.append(memory_line(viewer, f"at {size >> 20} MiB stored, a tree of all made"))
    return lines


def line(name: str, value: tuple[float, float | None], limit: float | None) -> str:
    """A measure, beside it the viewer's CPU time where that is known, and the limit."""
    cpu = f"{value[1]:10,.0f} CPU" if value[1] is not None else " " * 14
    return f"{value[0]:10,.0f} {cpu}  {name}" + (f" (at most {limit:,.0f})" if limit else "")


def main() -> None:
    """Measures all, or what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, nargs="*", default=[100], metavar="MIB", help="sizes for memory")
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    print(
        f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, load {load:.1f} before the first measure",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        viewer = Viewer(os.path.join(folder, "viewer.db"), "4GB")
        begin_ns = time.time_ns() - 3600 * 10**9
        try:
            for measure in (ingestion, lists, large_trace, flame):
                print("\n".join(measure(viewer, begin_ns)), flush=True)
                print(memory_line(viewer, f"after this: {measure.__name__}"), flush=True)
            print("\n".join(memory(viewer, begin_ns, [size << 20 for size in chosen.stored])), flush=True)
        finally:
            viewer.stop()


if __name__ == "__main__":
    main()
