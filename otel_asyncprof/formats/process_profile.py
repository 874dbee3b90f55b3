"""OTLP ProfilesData -> for each process its samples, with the times at which they were taken where these are known."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .stack_sample import Identity, Reader, StackSample, stack_sample

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import Profile, ProfilesData, Sample

NO_PERIOD_NS = 10_000_000  # of a profile that names none


@dataclass(frozen=True, slots=True)
class TimedSample:
    """A sample with its single observations: the ends of CPU periods, and wall observations with their weights."""

    sample: StackSample
    cpu_at: tuple[int, ...]  # ns since 1970
    wall_at: tuple[tuple[int, int], ...]  # (ns since 1970, ns); empty without a timeline

    @property
    def n_observations(self) -> int:
        """How often it was seen; at least once."""
        return max(len(self.wall_at), len(self.cpu_at), 1)

    def since(self, begin_ns: int, period_ns: int) -> "TimedSample":
        """What was seen of it from a time on."""
        cpu_at = tuple(time for time in self.cpu_at if time >= begin_ns)
        wall_at = tuple((time, value) for time, value in self.wall_at if time >= begin_ns)
        times = tuple(sorted([*cpu_at, *(time for time, _ in wall_at)]))
        cpu_ns, wall_ns = period_ns * len(cpu_at), sum(value for _, value in wall_at)
        return TimedSample(replace(self.sample, cpu_ns=cpu_ns, wall_ns=wall_ns, timestamps=times), cpu_at, wall_at)


@dataclass(frozen=True, slots=True)
class ProcessProfile:
    """All that was seen of one process."""

    resource: Mapping[str, Any]
    samples: tuple[TimedSample, ...]
    start_ns: int
    end_ns: int
    period_ns: int  # CPU time between two CPU samples

    @property
    def service(self) -> str:
        """The service's name; empty when there is none."""
        return str(self.resource.get("service.name", ""))

    @property
    def pid(self) -> int:
        """The process id; 0 when it is not known."""
        pid = self.resource.get("process.pid", 0)
        return pid if isinstance(pid, int) else 0

    @property
    def name(self) -> str:
        """What people know the process by."""
        return " ".join(part for part in (self.service or "process", str(self.pid or "")) if part)

    def since(self, begin_ns: int) -> "ProcessProfile":
        """What was seen from a time on; all of a profile without a timeline that ends after it."""
        if self.end_ns < begin_ns:
            return replace(self, samples=())
        if not self.has_timeline:
            return self
        kept = tuple(timed.since(begin_ns, self.period_ns) for timed in self.samples)
        samples = tuple(timed for timed in kept if timed.wall_at or timed.cpu_at)
        return replace(self, samples=samples, start_ns=max(self.start_ns, begin_ns))

    @property
    def has_timeline(self) -> bool:
        """Whether wall observations have times."""
        return any(timed.wall_at for timed in self.samples)


class _Sums:
    def __init__(self) -> None:
        self.cpu_ns = self.wall_ns = 0
        self.cpu_at: list[int] = []
        self.wall_at: list[tuple[int, int]] = []

    def add_cpu(self, sample: "Sample", period: int) -> None:
        self.cpu_ns += period * (sum(sample.values) or len(sample.timestamps_unix_nano))
        self.cpu_at += sample.timestamps_unix_nano

    def add_wall(self, sample: "Sample") -> None:
        self.wall_ns += sum(sample.values)
        if sample.timestamps_unix_nano:
            self.wall_at += zip(sample.timestamps_unix_nano, sample.values, strict=True)

    def timed(self, identity: Identity) -> TimedSample:
        times = tuple(sorted([*self.cpu_at, *(time for time, _ in self.wall_at)]))
        sample = stack_sample(identity, self.cpu_ns, self.wall_ns, times)
        return TimedSample(sample, tuple(sorted(self.cpu_at)), tuple(sorted(self.wall_at)))


class _Process:
    def __init__(self, resource: Mapping[str, Any]) -> None:
        self.resource = resource
        self.sums: dict[Identity, _Sums] = {}
        self.start_ns = self.end_ns = 0
        self.period_ns = NO_PERIOD_NS

    def add(self, profile: "Profile", reader: Reader) -> None:
        start, end = profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano
        self.start_ns = min(self.start_ns or start, start)
        self.end_ns = max(self.end_ns, end)
        is_cpu = reader.is_cpu(profile)
        if is_cpu and profile.period > 0:
            self.period_ns = profile.period
        for sample in profile.samples:
            sums = self.sums.setdefault(reader.identity(sample), _Sums())
            if is_cpu:
                sums.add_cpu(sample, profile.period)
            else:
                sums.add_wall(sample)

    def finished(self) -> ProcessProfile:
        samples = tuple(sums.timed(identity) for identity, sums in self.sums.items())
        return ProcessProfile(self.resource, samples, self.start_ns, self.end_ns, self.period_ns)


def process_profiles(profiles: "Iterable[ProfilesData]") -> list[ProcessProfile]:
    """The processes in the order in which they are met. IndexError, ValueError: the messages do not hold together."""
    processes: dict[str, _Process] = {}
    for data in profiles:
        reader = Reader(data.dictionary)
        for of_resource in data.resource_profiles:
            resource = attributes_of(of_resource.resource.attributes, data.dictionary.string_table)
            process = processes.setdefault(json.dumps(resource, sort_keys=True, default=repr), _Process(resource))
            for of_scope in of_resource.scope_profiles:
                for profile in of_scope.profiles:
                    process.add(profile, reader)
    return [process.finished() for process in processes.values()]


def attributes_of(pairs: "Iterable[KeyValue]", strings: Sequence[str] = ()) -> dict[str, Any]:
    """Plain keys and values, as resources and spans have them; in profiles they may refer to a table of strings."""
    return {pair.key or _referred(pair.key_strindex, strings): plain_value(pair.value, strings) for pair in pairs}


def plain_value(value: "AnyValue", strings: Sequence[str] = ()) -> Any:
    """The Python value that stands for an AnyValue."""
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [plain_value(item, strings) for item in value.array_value.values]
        case "kvlist_value":
            return attributes_of(value.kvlist_value.values, strings)
        case "string_value_strindex":
            return _referred(value.string_value_strindex, strings)
        case kind:
            return getattr(value, kind)


def _referred(index: int, strings: Sequence[str]) -> str:
    return strings[index] if 0 < index < len(strings) else ""
