"""What each profiler delivered, format by format: stacks as names, root first, with the span they are linked to."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.mojo import mojo_stacks
from peers.pprof import pprof_samples
from peers.wire import chunk, fields


@dataclass(frozen=True)
class Seen:
    """A stack, and how often (or with which weight) it was seen."""

    functions: tuple[str, ...]
    weight: float
    span_id: str | None = None  # 16 hexadecimal digits
    task: str | None = None  # the name of the leaf's task, where the format has it


def otlp_of_ours(directory: Path, profile: dict[str, Any]) -> Iterator[Seen]:
    """Our own file, which holds the window alone. The weight is wall time: a stack seen n times is one sample."""
    from otel_asyncprof.export.file import read_profiles
    from otel_asyncprof.formats.stack_sample import stack_samples

    path = directory / "profile.otlp"
    if not path.exists():  # nothing was seen in the window
        return
    for sample in stack_samples(read_profiles(path)):
        yield Seen(sample.functions, sample.wall_ns, f"{sample.span_id:016x}" if sample.span_id else None)


def pprof_of_ddtrace(directory: Path, profile: dict[str, Any]) -> Iterator[Seen]:
    """Its pprof files: each sample has the time at which it was taken, and the span of its thread as a label."""
    import zstandard

    for path in sorted(directory.glob("ddtrace.*.pprof")):
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            content = reader.read()
        for sample in pprof_samples(content):
            count = sample.values.get("wall-samples", 0)
            taken = sample.labels.get("end_timestamp_ns", 0)
            if count and int(taken) >= profile["from_unix_ns"]:
                span = sample.labels.get("span id")
                span_id = f"{int(span) & (1 << 64) - 1:016x}" if span else None
                yield Seen(sample.functions, count, span_id, str(sample.labels.get("task name")))


def pushes_of_pyroscope(directory: Path, profile: dict[str, Any]) -> Iterator[Seen]:
    """What it pushed: PushRequest.series[].samples[].raw_profile is a pprof. CPU time over its period is a count."""
    for path in sorted(directory.glob("sink.*")):
        for number, series in fields(_unzipped(path.read_bytes())):
            if number != 1:
                continue
            for member, sample in fields(chunk(series)):
                if member != 2:
                    continue
                for part, raw in fields(chunk(sample)):
                    if part == 1:
                        for found in pprof_samples(_unzipped(chunk(raw))):
                            yield Seen(found.functions, sum(found.values.values()) / max(1, found.period))


def otlp_of_beacon(directory: Path, profile: dict[str, Any]) -> Iterator[Seen]:
    """What it posted: each sample has its timestamps and, for the thread's running callback, a link."""
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

    for path in sorted(directory.glob("sink.*")):
        data = ProfilesData.FromString(_unzipped(path.read_bytes()))
        tables = data.dictionary
        for of_resource in data.resource_profiles:
            for of_scope in of_resource.scope_profiles:
                for found in (sample for profile_ in of_scope.profiles for sample in profile_.samples):
                    count = sum(1 for time in found.timestamps_unix_nano if time >= profile["from_unix_ns"])
                    names = [
                        tables.string_table[tables.function_table[line.function_index].name_strindex]
                        for index in reversed(tables.stack_table[found.stack_index].location_indices)
                        for line in reversed(tables.location_table[index].lines)
                    ]
                    link = tables.link_table[found.link_index].span_id.hex() if found.link_index else None
                    yield Seen(tuple(names), count, link)


def lines_of_py_spy(directory: Path, profile: dict[str, Any]) -> Iterator[Seen]:
    """Collapsed stacks: name (file:line);name (file:line) count."""
    for line in (directory / "profile.txt").read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        yield Seen(tuple(frame.split(" (")[0] for frame in stack.split(";")), int(count))


def lines_of_austin(directory: Path, profile: dict[str, Any]) -> Iterator[Seen]:
    """Collapsed stacks, one line for each sample: P<pid>;T<thread>;file:name:line;file:name:line microseconds."""
    with (directory / "profile.txt").open(errors="replace") as file:
        for line in file:
            if line.startswith("P"):
                frames = line.rpartition(" ")[0].split(";")[2:]
                yield Seen(tuple(frame.rsplit(":", 2)[-2] for frame in frames if ":" in frame), 1)


def mojo_of_echion(directory: Path, profile: dict[str, Any]) -> Iterator[Seen]:
    """Its binary stream from where it was when the window opened."""
    for functions in mojo_stacks((directory / "profile.mojo").read_bytes(), profile["from_offset"]):
        yield Seen(functions, 1)


def nothing(directory: Path, profile: dict[str, Any]) -> Iterator[Seen]:
    """Without a profiler, no stacks."""
    return iter(())


def _unzipped(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
