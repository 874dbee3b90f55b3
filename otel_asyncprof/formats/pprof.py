"""pprof: gzip-compressed profile.proto, for `go tool pprof`, Pyroscope, Speedscope and many others.

One sample for each stack, link and set of attributes, with three values: observations, CPU and wall nanoseconds.
"""

import gzip
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .otlp import varint
from .process_profile import ProcessProfile, TimedSample, process_profiles
from .stack_sample import Frame, StackSample

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

# Fields of the messages of profile.proto.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_TIME_NANOS, _DURATION_NANOS, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 9, 10, 11, 12, 13, 14
_LABEL_KEY, _LABEL_TEXT, _LABEL_NUMBER = 1, 2, 3
_MAPPING_HAS_FUNCTIONS, _MAPPING_HAS_FILENAMES, _MAPPING_HAS_LINES = 7, 8, 9

TYPES = (("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds"))
_ONLY_MAPPING = 1


def to_pprof(profiles: "Iterable[ProfilesData]", mode: str = "wall") -> bytes:
    """One profile of all processes; the mode says which of its values is shown first."""
    processes = process_profiles(profiles)
    builder = _Builder()
    for process in processes:
        for timed in process.samples:
            builder.add(process, timed)
    return gzip.compress(builder.finished(processes, mode), mtime=0)


def labels_of(process: ProcessProfile, sample: StackSample) -> dict[str, str | int]:
    """Everything about a sample that is not its stack, under the names by which pprof's users know it."""
    labels: dict[str, str | int | None] = {
        "thread": sample.thread_name,
        "thread id": sample.thread_id,
        "task": sample.task_name,
        "state": sample.state,
        "local root": sample.local_root_name,
        "trace_id": format(sample.trace_id, "032x") if sample.span_id else None,
        "span_id": format(sample.span_id, "016x") if sample.span_id else None,
        "service": process.service,
        "pid": process.pid,
    }
    return {key: value for key, value in labels.items() if value}


class _Builder:
    """Tables of strings, functions and locations, each entry once."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[Frame, int] = {}
        self._samples: list[bytes] = []

    def add(self, process: ProcessProfile, timed: TimedSample) -> None:
        """Adds one sample."""
        sample = timed.sample
        stack = [self._location(frame) for frame in reversed(sample.frames)]
        labels = [self._label(key, value) for key, value in labels_of(process, sample).items()]
        values = (timed.n_observations, sample.cpu_ns, sample.wall_ns)
        self._samples.append(_packed(1, stack) + _packed(2, values) + b"".join(_message(3, label) for label in labels))

    def finished(self, processes: list[ProcessProfile], mode: str) -> bytes:
        """The profile's bytes."""
        string = self._string
        start = min((process.start_ns for process in processes), default=0)
        end = max((process.end_ns for process in processes), default=0)
        period = processes[0].period_ns if processes else 0
        parts = [_message(_SAMPLE_TYPE, self._value_type(*kind)) for kind in TYPES]
        parts += [_message(_SAMPLE, sample) for sample in self._samples]
        flags = (_MAPPING_HAS_FUNCTIONS, _MAPPING_HAS_FILENAMES, _MAPPING_HAS_LINES)
        parts.append(_message(_MAPPING, _number(1, _ONLY_MAPPING) + b"".join(_number(flag, 1) for flag in flags)))
        parts += [
            _message(
                _LOCATION,
                _number(1, number)
                + _number(2, _ONLY_MAPPING)
                + _message(4, _number(1, self._function(frame)) + _number(2, frame.line)),
            )
            for frame, number in self._locations.items()
        ]
        parts += [
            _message(
                _FUNCTION,
                _number(1, number)
                + _number(2, string(name))
                + _number(3, string(name))
                + _number(4, string(file))
                + _number(5, first_line),
            )
            for (name, file, first_line), number in self._functions.items()
        ]
        parts.append(_number(_TIME_NANOS, start) + _number(_DURATION_NANOS, max(end - start, 0)))
        parts.append(_message(_PERIOD_TYPE, self._value_type("cpu", "nanoseconds")) + _number(_PERIOD, period))
        comments = [f"{key}={value}" for process in processes for key, value in process.resource.items()]
        parts.append(_packed(_COMMENT, [string(comment) for comment in comments]))
        parts.append(_number(_DEFAULT_TYPE, string(mode)))
        parts += [_message(_STRING, text.encode(errors="replace")) for text in self._strings]
        return b"".join(parts)

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _function(self, frame: Frame) -> int:
        key = (frame.function, frame.file, frame.first_line)
        return self._functions.setdefault(key, len(self._functions) + 1)

    def _location(self, frame: Frame) -> int:
        self._function(frame)
        return self._locations.setdefault(frame, len(self._locations) + 1)

    def _label(self, key: str, value: str | int) -> bytes:
        name = _number(_LABEL_KEY, self._string(key))
        if isinstance(value, int):
            return name + _number(_LABEL_NUMBER, value)
        return name + _number(_LABEL_TEXT, self._string(value))

    def _value_type(self, kind: str, unit: str) -> bytes:
        return _number(1, self._string(kind)) + _number(2, self._string(unit))


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value & (1 << 64) - 1) if value else b""


def _message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    content = b"".join(varint(value & (1 << 64) - 1) for value in values)
    return _message(field, content) if content else b""
