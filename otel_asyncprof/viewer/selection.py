"""Which samples an answer is about, and the time on each of their stacks."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..analysis.findings import percentile
from ..formats.stack_sample import Frame
from .flame import Weight, frames_of, total_of
from .looks import STATES, Look, Sample, shared_time
from .reading import Reader, TraceData
from .splits import scaled_down
from .tree_layout import Stack

MAX_TRACES = 1000  # of an operation that are read for one answer: the newest
MAX_STACKS = 20_000  # of sums: those with the most time; of the others their time alone is told
WEIGHTS = ELAPSED, TASK, CPU = ("elapsed", "task", "cpu")
QUERY_RUNS = "s.query = :query AND s.start_ns BETWEEN :since AND :until"
OF_SERVICE = "SELECT id FROM resource WHERE service = :service"
SCOPES = SELF, CHILDREN, TRACE = ("self", "children", "trace")
ALL, SLOW, FAST = PARTS = ("all", "slow", "fast")


class NothingThere(Exception):
    """What was asked for is not stored."""


@dataclass(frozen=True)
class Choice:
    """What is asked for."""

    trace: bytes | None = None
    span: bytes | None = None
    scope: str = SELF
    operation: tuple[str, str] | None = None  # service, name
    at: str = ALL
    query: int | None = None
    service: str | None = None
    since_ns: int = 0
    until_ns: int = (1 << 62) - 1
    states: frozenset[str] = frozenset(STATES)
    from_ns: int | None = None  # after the trace's begin
    to_ns: int | None = None
    task: str | None = None
    weight: str = ELAPSED


@dataclass
class Chosen:
    """The time on each stack, by state."""

    by_stack: dict[int, Weight] = field(default_factory=dict)
    numbered: dict[int, Stack] = field(default_factory=dict)  # the stacks by their numbers
    weights: dict[Stack, Weight] = field(default_factory=dict)
    frames: Mapping[int, Frame] = field(default_factory=dict)
    duration_ns: int = 0  # of what was chosen; 0 when that has none
    samples: int = 0
    runs: int = 1
    traces: list[bytes] = field(default_factory=list)
    others: Weight = field(default_factory=Weight)  # of stacks that are too many to be told

    def add(self, stack: int, state: str, time: float, n: int) -> None:
        """Another time on a stack."""
        weight = self.by_stack.get(stack)
        if weight is None:
            weight = self.by_stack[stack] = Weight()
        weight.add(state, time, n)
        self.samples += n

    def resolve(self, connection: sqlite3.Connection, reader: Reader) -> "Chosen":
        """Looks the stacks up."""
        self.numbered = reader.stacks(connection, self.by_stack)
        self.weights = {stack: self.by_stack[number] for number, stack in self.numbered.items()}
        if self.others.n:
            self.weights[()] = self.others
        self.frames = reader.frames(connection, frames_of(self.weights))
        return self


def chosen(connection: sqlite3.Connection, reader: Reader, choice: Choice) -> Chosen:
    """The stacks of a choice; NothingThere when it names what is not stored."""
    found = Chosen()
    if choice.trace is not None:
        _add_trace(found, _trace(connection, reader, choice.trace), choice)
        found.traces = [choice.trace]
    elif choice.operation is not None:
        for trace_id in operation_traces(connection, choice):
            if (data := reader.trace(connection, trace_id)) is not None:
                _add_trace(found, data, choice)
                found.traces.append(trace_id)
        found.runs = len(found.traces)
    else:
        _add_sums(found, connection, choice)
    return found.resolve(connection, reader)


def _trace(connection: sqlite3.Connection, reader: Reader, trace_id: bytes) -> TraceData:
    data = reader.trace(connection, trace_id)
    if data is None:
        raise NothingThere("this trace is not stored: it may not have arrived yet, or has made room for newer ones")
    return data


def scope_of(data: TraceData, choice: Choice) -> tuple[set[bytes] | None, int, int]:
    """The spans of a scope (None: all) and its begin and end."""
    begin, end = data.begin_ns, data.end_ns
    spans: set[bytes] | None = None
    if choice.span is not None and choice.scope != TRACE:
        index = data.index_of.get(choice.span)
        if index is None:
            raise NothingThere("this span is not stored: it may not have arrived yet")
        inner = [index] if choice.scope == SELF else data.below(index)
        spans = {data.spans[number].row.span_id for number in inner}
        begin, end = data.times[index].begin_ns, data.times[index].end_ns
    if choice.from_ns is not None:
        begin = max(begin, data.begin_ns + choice.from_ns)
    if choice.to_ns is not None:
        end = min(end, data.begin_ns + choice.to_ns)
    return spans, begin, max(end, begin)


def _add_trace(found: Chosen, data: TraceData, choice: Choice) -> None:
    spans, begin, end = scope_of(data, choice)
    found.duration_ns += end - begin
    if choice.weight == CPU or not data.timeline:
        samples = [
            sample
            for sample in data.samples
            if (spans is None or sample.span_id in spans) and (choice.task is None or sample.task == choice.task)
        ]
        _add_samples(found, samples, choice, begin, end)
        return
    looks = [
        part
        for look in data.looks
        if (spans is None or look.span_id in spans)
        and (choice.task is None or look.task.name == choice.task)
        and (part := look.within(begin, end))
    ]
    add_looks(found, looks, choice)


def add_looks(found: Chosen, looks: Sequence[Look], choice: Choice) -> None:
    """Their time, shared out or in full."""
    shared = choice.weight == ELAPSED
    times: Iterable[float] = shared_time(looks) if shared else (float(look.end_ns - look.begin_ns) for look in looks)
    for look, time in zip(looks, times, strict=True):
        if look.state in choice.states or (look.state not in STATES and "running" in choice.states):
            for number, (stack, share) in enumerate(look.stacks):
                found.add(stack, look.state, time * share, 1 if number == 0 else 0)


def _add_samples(found: Chosen, samples: Sequence[Sample], choice: Choice, begin: int, end: int) -> None:
    """CPU time, or sums where there are no times: these are scaled down to the time there was."""
    kept = [sample for sample in samples if sample.state in choice.states]
    if choice.weight == CPU:
        for sample in kept:
            inside = sum(1 for time in sample.cpu_at if begin < time <= end)
            if inside:
                found.add(sample.stack, sample.state, sample.cpu_ns * inside / len(sample.cpu_at), inside)
        return
    sums: dict[str, float] = {}
    for sample in samples:
        sums[sample.state] = sums.get(sample.state, 0.0) + sample.wall_ns
    limits = scaled_down(sums, end - begin) if choice.weight == ELAPSED else sums
    for sample in kept:
        if sample.wall_ns:
            factor = limits.get(sample.state, 0.0) / sums[sample.state]
            found.add(sample.stack, sample.state, sample.wall_ns * factor, sample.n)


def operation_traces(connection: sqlite3.Connection, choice: Choice, most: int = MAX_TRACES) -> list[bytes]:
    """The traces of an operation: all, those of p95 and more, or those of p50 and less; the newest of them."""
    assert choice.operation is not None
    rows = connection.execute(
        "SELECT trace_id, duration_ns, start_ns FROM trace WHERE service = ? AND operation = ? "
        "AND start_ns BETWEEN ? AND ?",
        (*choice.operation, choice.since_ns, choice.until_ns),
    ).fetchall()
    if not rows:
        raise NothingThere("no trace of this operation is stored")
    durations = sorted(row[1] for row in rows)
    if choice.at == SLOW:
        limit = percentile(durations, 0.95)
        rows = [row for row in rows if row[1] >= limit]
    elif choice.at == FAST:
        limit = percentile(durations, 0.5)
        rows = [row for row in rows if row[1] <= limit]
    rows.sort(key=lambda row: -row[2])
    return [row[0] for row in rows[:most]]


def rows_of(choice: Choice) -> tuple[str, str, dict[str, Any]]:
    """Samples `p` of a choice that is of no trace and no operation, for SQL: where they are, which, and values."""
    values: dict[str, Any] = {"since": choice.since_ns, "until": choice.until_ns}
    if choice.query is not None:
        source = "span s JOIN sample p ON p.trace_id = s.trace_id AND p.span_id = s.span_id"
        where = QUERY_RUNS
        values["query"] = choice.query
    else:
        source, where = "sample p", "p.last_ns BETWEEN :since AND :until"
        if choice.service is not None:
            where += f" AND p.resource IN ({OF_SERVICE})"
            values["service"] = choice.service
    limits, more = limits_of(choice)
    return source, where + limits, values | more


def limits_of(choice: Choice) -> tuple[str, dict[str, Any]]:
    """Task and states of samples `p`, whatever they are of."""
    states = f" AND p.state IN ({', '.join(repr(state) for state in sorted(choice.states))})"
    if choice.task is None:
        return states, {}
    return " AND p.task = :task" + states, {"task": choice.task}


def _add_sums(found: Chosen, connection: sqlite3.Connection, choice: Choice) -> None:
    column = "p.cpu_ns" if choice.weight == CPU else "p.wall_ns"
    source, where, values = rows_of(choice)
    if choice.query is not None:
        runs = f"SELECT COUNT(*), COALESCE(SUM(MAX(end_ns - start_ns, 0)), 0) FROM span s WHERE {QUERY_RUNS}"
        found.runs, found.duration_ns = connection.execute(runs, values).fetchone()
        if not found.runs:
            raise NothingThere("no run of this statement is stored")
    where += f" AND {column} > 0"
    heaviest = ""
    if connection.execute("SELECT COUNT(*) > ? FROM stack", (MAX_STACKS,)).fetchone()[0]:
        heaviest = (
            f"AND p.stack IN (SELECT p.stack FROM {source} WHERE {where} "
            f"GROUP BY p.stack ORDER BY SUM({column}) DESC LIMIT {MAX_STACKS})"
        )
    sums = f"p.state, SUM({column}), SUM(p.n) FROM {source} WHERE {where}"
    for stack, state, time, n in connection.execute(
        f"SELECT p.stack, {sums} {heaviest} GROUP BY p.stack, p.state", values
    ):
        found.add(stack, state, float(time), n)
    if heaviest:
        told = total_of(found.by_stack)
        for state, time, n in connection.execute(f"SELECT {sums} GROUP BY p.state", values):
            found.others.add(state, time - told.states[STATES.index(state)], n)
        found.others.n -= told.n
        found.samples += found.others.n
