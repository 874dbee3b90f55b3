"""The tables -> plain data for computations."""

import sqlite3
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import Any

from ..analysis.places import caller_in
from ..formats.stack_sample import Frame
from .looks import Look, Sample, looks_of
from .splits import SpanSplit, SpanTime, splits_of
from .tree_layout import Stack
from .waterfall import Placed, SpanRow, placed

MAX_CACHED_TRACES = 8
MANY_SPANS = 500  # such a trace takes longer than a click may: it lies ready, and while it grows is as it was before
MAX_CACHED_ROWS = 40_000  # spans and samples of all traces that are kept
MAX_CACHED_FRAMES = 100_000
MAX_CACHED_STACKS = 25_000
MAX_EXPORT_NS = 600 * 10**9  # between a sample's first and last observation
_CHUNK = 500  # placeholders of one statement
ID_SEPARATOR = "\x1f"  # between a thread's name and its id

_SPANS = """SELECT s.span_id, s.parent_id, s.name, r.service, s.kind, s.start_ns, s.end_ns, s.error, q.statement,
    s.query, s.caller, s.resource FROM span s JOIN resource r ON r.id = s.resource LEFT JOIN query q ON q.id = s.query
    WHERE s.trace_id = ?"""
SAMPLE_COLUMNS = """trace_id, span_id, resource, thread, thread_id, task, state, stack, n, wall_ns, cpu_ns, wall, cpu"""


def sample_of(row: Sequence[Any]) -> Sample:
    """A row of SAMPLE_COLUMNS."""
    trace_id, span_id, resource, thread, thread_id, task, state, stack, n, wall_ns, cpu_ns, wall, cpu = row
    name = f"{thread}{ID_SEPARATOR}{thread_id}" if thread_id else thread
    return Sample(
        trace_id, span_id, resource, name, task, state, stack, n, wall_ns, cpu_ns, array("q", wall), array("q", cpu)
    )


@dataclass
class TraceData:
    """A trace with all samples linked to it."""

    trace_id: bytes
    spans: list[Placed]
    samples: list[Sample]
    index_of: dict[bytes, int] = field(init=False)
    answer: bytes | None = None  # as the API sends it, once that was asked for

    def __post_init__(self) -> None:
        self.index_of = {span.row.span_id: index for index, span in enumerate(self.spans)}

    @property
    def size(self) -> int:
        """How much it is to keep."""
        return len(self.spans) + len(self.samples)

    @cached_property
    def begin_ns(self) -> int:
        """Of the first span."""
        return min(span.row.start_ns for span in self.spans)

    @cached_property
    def end_ns(self) -> int:
        """Of the span that ends last."""
        return max(max(span.row.end_ns, span.row.start_ns) for span in self.spans)

    @cached_property
    def timeline(self) -> bool:
        """Whether its samples have times."""
        return any(sample.wall_at for sample in self.samples)

    @cached_property
    def times(self) -> list[SpanTime]:
        """The spans for computations."""
        return [
            SpanTime(span.row.span_id, span.parent, span.row.start_ns, max(span.row.end_ns, span.row.start_ns))
            for span in self.spans
        ]

    @cached_property
    def splits(self) -> list[SpanSplit]:
        """Of each span."""
        return splits_of(self.times, self.samples)

    @cached_property
    def looks(self) -> list[Look]:
        """In order of their ends, each within the time of its span."""
        parts = []
        for look in looks_of(self.samples):
            index = self.index_of.get(look.span_id or b"")
            if index is not None and (part := look.within(self.times[index].begin_ns, self.times[index].end_ns)):
                parts.append(part)
        return parts

    @cached_property
    def period_ns(self) -> int:
        """The typical time between two looks; 0 without samples that have times."""
        weights = sorted(weight for sample in self.samples for weight in islice(sample.wall_at, 1, None, 2))
        return weights[len(weights) // 2] if weights else 0

    def below(self, index: int) -> list[int]:
        """A span and all below it."""
        found = [index]
        for number in range(index + 1, len(self.spans)):
            if self.spans[number].depth <= self.spans[index].depth:
                break
            found.append(number)
        return found


class Reader:
    """Reads for one answer; what cannot change is kept for the next."""

    def __init__(self) -> None:
        self._frames: dict[int, Frame] = {}
        self._stacks: dict[int, Stack] = {}
        self._callers: dict[int, int] = {}
        self._traces: OrderedDict[bytes, tuple[_State, TraceData]] = OrderedDict()
        self._same = _Same().__getitem__
        self._lock = Lock()

    def forget(self) -> None:
        """After everything was deleted."""
        with self._lock:
            self._frames, self._stacks, self._callers = {}, {}, {}
            self._traces.clear()

    def trace(self, connection: sqlite3.Connection, trace_id: bytes) -> TraceData | None:
        """A trace; None when there is none. A large one that has just changed is as it was when it was last settled."""
        state = _state(connection, trace_id)
        if state is None:
            return None
        with self._lock:
            known = self._traces.get(trace_id)
            if known is not None and (known[0] == state or (not state.settled and state.spans >= MANY_SPANS)):
                self._traces.move_to_end(trace_id)
                return known[1]
        data = read_trace(connection, trace_id)
        if data is not None:
            self._keep(state, data)
        return data

    def keep(self, connection: sqlite3.Connection, data: TraceData) -> None:
        """Has a trace that was just read at hand for the next answer."""
        if (state := _state(connection, data.trace_id)) is not None:
            self._keep(state, data)

    def _keep(self, state: "_State", data: TraceData) -> None:
        if data.size > MAX_CACHED_ROWS:
            return
        with self._lock:
            self._traces[data.trace_id] = state, data
            self._traces.move_to_end(data.trace_id)
            rows = sum(kept.size for _, kept in self._traces.values())
            while len(self._traces) > MAX_CACHED_TRACES or rows > MAX_CACHED_ROWS:
                rows -= self._traces.popitem(last=False)[1][1].size

    def stacks(self, connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Stack]:
        """The stacks of these numbers as numbers of frames, root first. Their frames can be asked for afterwards."""
        with self._lock:
            stacks, frames = self._stacks, self._frames
        wanted = set(numbers)
        missing = wanted - stacks.keys()
        if missing:
            for number, packed in _by_number(connection, "SELECT id, frames FROM stack WHERE id IN", missing):
                stacks[number] = tuple(map(self._same, array("I", packed)))
            needed = {frame for number in missing if number in stacks for frame in stacks[number]}
            self._read_frames(connection, needed - frames.keys(), frames)
        found = {number: stacks[number] for number in wanted if number in stacks}
        if len(frames) > MAX_CACHED_FRAMES or len(stacks) > MAX_CACHED_STACKS:
            self._same = _Same().__getitem__
            with self._lock:  # answers under way keep the old ones
                self._frames = dict(frames) if len(frames) <= MAX_CACHED_FRAMES else {}
                self._stacks, self._callers = {}, {}
        return found

    def frames(self, connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Frame]:
        """The frames of these numbers."""
        with self._lock:
            frames = self._frames
        wanted = set(numbers)
        self._read_frames(connection, wanted - frames.keys(), frames)
        return {number: frames[number] for number in wanted if number in frames}

    def _read_frames(self, connection: sqlite3.Connection, missing: set[int], into: dict[int, Frame]) -> None:
        statement = "SELECT id, function, file, line, first_line FROM frame WHERE id IN"
        for number, *values in _by_number(connection, statement, missing):
            into[number] = Frame(*values)

    def callers_of(self, connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, int]:
        """Of each stack, the number of the application's frame nearest to the leaf."""
        with self._lock:
            known = self._callers
        wanted = set(numbers)
        stacks = self.stacks(connection, wanted - known.keys())
        frames = self.frames(connection, {frame for path in stacks.values() for frame in path})
        for number, path in stacks.items():
            caller = caller_in(frames[inner] for inner in path)
            if caller is not None:
                known[number] = next(inner for inner in reversed(path) if frames[inner] == caller)
        return {number: known[number] for number in wanted if number in known}


class _Same(dict[int, int]):
    """For each number one object: those of a new array are objects of their own, which take more than the stacks."""

    def __missing__(self, number: int) -> int:
        return self.setdefault(number, number)


@dataclass(frozen=True, slots=True)
class _State:
    """What changes when a trace does."""

    spans: int
    samples: int
    end_ns: int
    settled: bool = field(compare=False)


def _state(connection: sqlite3.Connection, trace_id: bytes) -> _State | None:
    row = connection.execute(
        "SELECT spans, samples, end_ns, summary IS NOT NULL FROM trace WHERE trace_id = ?", (trace_id,)
    ).fetchone()
    return _State(*row) if row is not None else None


def _by_number(connection: sqlite3.Connection, statement: str, numbers: Iterable[int]) -> Iterable[Sequence[Any]]:
    left = list(numbers)
    for begin in range(0, len(left), _CHUNK):
        chunk = left[begin : begin + _CHUNK]
        yield from connection.execute(f"{statement} ({','.join('?' * len(chunk))})", chunk)


def read_trace(connection: sqlite3.Connection, trace_id: bytes) -> TraceData | None:
    """A trace from the tables; None when it has no span."""
    rows = [SpanRow(*row) for row in connection.execute(_SPANS, (trace_id,))]
    if not rows:
        return None
    samples = connection.execute(f"SELECT {SAMPLE_COLUMNS} FROM sample WHERE trace_id = ?", (trace_id,))
    return TraceData(trace_id, placed(rows), [sample_of(row) for row in samples])


def traces_with(connection: sqlite3.Connection, function: str, file: str | None) -> set[bytes]:
    """The traces with a sample on a function."""
    named = "SELECT id FROM frame WHERE function = :function AND (:file IS NULL OR file = :file)"
    frames = {row[0] for row in connection.execute(named, {"function": function, "file": file})}
    if not frames:
        return set()
    stacks = [
        number
        for number, packed in connection.execute("SELECT id, frames FROM stack")
        if not frames.isdisjoint(array("I", packed))
    ]
    statement = "SELECT DISTINCT trace_id FROM sample WHERE trace_id IS NOT NULL AND stack IN"
    return {row[0] for row in _by_number(connection, statement, stacks)}
