"""OTLP request bytes -> one StackSample for each distinct stack, link and set of attributes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import (
        Profile,
        ProfilesData,
        ProfilesDictionary,
        Sample,
    )


class Frame(NamedTuple):
    """One frame: the line is the one executing, first_line the one of the def."""

    function: str
    file: str
    line: int
    first_line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}"


@dataclass(frozen=True, slots=True)
class StackSample:
    """What was seen of one stack under one span in one state: the CPU and the wall profile together."""

    frames: tuple[Frame, ...]  # root first
    task_name: str | None
    thread_name: str | None
    thread_id: int | None
    state: str | None
    local_root_name: str | None
    trace_id: int  # 0 = no link
    span_id: int
    cpu_ns: int
    wall_ns: int
    timestamps: tuple[int, ...]  # ns since 1970, of CPU periods and, with the timeline, of wall observations

    @property
    def functions(self) -> tuple[str, ...]:
        """The qualified names of the frames, root first."""
        return tuple(frame.function for frame in self.frames)


Attributes = Mapping[str, str | int]


class Identity(NamedTuple):
    """What tells one sample from another."""

    frames: tuple[Frame, ...]
    attributes: tuple[tuple[str, str | int], ...]
    trace_id: int
    span_id: int


class _Sums:
    def __init__(self) -> None:
        self.cpu_ns = 0
        self.wall_ns = 0
        self.timestamps: list[int] = []


def stack_samples(requests: Iterable[bytes]) -> list[StackSample]:
    """The samples of all requests (or ProfilesData messages: the same bytes), in the order in which they are met."""
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

    sums: dict[Identity, _Sums] = {}
    for request in requests:
        data = ProfilesData.FromString(request)
        reader = Reader(data.dictionary)
        for profile in _profiles(data):
            for sample in profile.samples:
                found = sums.setdefault(reader.identity(sample), _Sums())
                found.timestamps.extend(sample.timestamps_unix_nano)
                if reader.is_cpu(profile):
                    found.cpu_ns += profile.period * (sum(sample.values) or len(sample.timestamps_unix_nano))
                else:
                    found.wall_ns += sum(sample.values)
    return [
        stack_sample(identity, found.cpu_ns, found.wall_ns, tuple(sorted(found.timestamps)))
        for identity, found in sums.items()
    ]


def _profiles(data: "ProfilesData") -> Iterable["Profile"]:
    for of_resource in data.resource_profiles:
        for of_scope in of_resource.scope_profiles:
            yield from of_scope.profiles


def stack_sample(identity: Identity, cpu_ns: int, wall_ns: int, timestamps: tuple[int, ...]) -> StackSample:
    """The sample of an identity with what was seen of it."""
    attributes = dict(identity.attributes)

    def name(key: str) -> str | None:
        value = attributes.get(key)
        return value if isinstance(value, str) else None

    thread_id = attributes.get("thread.id")
    return StackSample(
        frames=identity.frames,
        task_name=name("asyncio.task.name"),
        thread_name=name("thread.name"),
        thread_id=thread_id if isinstance(thread_id, int) else None,
        state=name("asyncprof.state"),
        local_root_name=name("asyncprof.local_root.name"),
        trace_id=identity.trace_id,
        span_id=identity.span_id,
        cpu_ns=cpu_ns,
        wall_ns=wall_ns,
        timestamps=timestamps,
    )


class Reader:
    """Resolves the indices of one dictionary; stacks and attributes are resolved once."""

    def __init__(self, dictionary: "ProfilesDictionary") -> None:
        self._dictionary = dictionary
        self._strings = dictionary.string_table
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._locations: dict[int, tuple[Frame, ...]] = {}
        self._attributes: dict[int, tuple[str, str | int]] = {}

    def is_cpu(self, profile: "Profile") -> bool:
        """Whether a profile tells CPU time, rather than wall time."""
        return self._strings[profile.period_type.type_strindex] == "cpu"

    def identity(self, sample: "Sample") -> Identity:
        """The sample with its stack, link and attributes resolved."""
        link = self._dictionary.link_table[sample.link_index] if sample.link_index else None
        return Identity(
            frames=self._frames(sample.stack_index),
            attributes=tuple(sorted(self._attribute(index) for index in sample.attribute_indices)),
            trace_id=int.from_bytes(link.trace_id) if link else 0,
            span_id=int.from_bytes(link.span_id) if link else 0,
        )

    def _attribute(self, index: int) -> tuple[str, str | int]:
        attribute = self._attributes.get(index)
        if attribute is None:
            entry = self._dictionary.attribute_table[index]
            attribute = self._attributes[index] = self._strings[entry.key_strindex], self._value(entry.value)
        return attribute

    def _value(self, value: "AnyValue") -> str | int:
        match value.WhichOneof("value"):
            case "int_value":
                return value.int_value
            case "string_value_strindex":
                return self._strings[value.string_value_strindex]
            case _:
                return value.string_value

    def _frames(self, stack_index: int) -> tuple[Frame, ...]:
        frames = self._stacks.get(stack_index)
        if frames is None:
            leaf_first = self._dictionary.stack_table[stack_index].location_indices
            frames = tuple(frame for index in reversed(leaf_first) for frame in self._location(index))
            self._stacks[stack_index] = frames
        return frames

    def _location(self, index: int) -> tuple[Frame, ...]:
        frames = self._locations.get(index)
        if frames is None:
            found = []
            for line in reversed(self._dictionary.location_table[index].lines):
                function = self._dictionary.function_table[line.function_index]
                name, file = self._strings[function.name_strindex], self._strings[function.filename_strindex]
                found.append(Frame(name, file, line.line, function.start_line))
            frames = tuple(found)
            self._locations[index] = frames
        return frames
