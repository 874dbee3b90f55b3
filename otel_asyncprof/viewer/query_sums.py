"""What lists say of statements, added up by the database: there are too many runs to look at each."""

import sqlite3
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..analysis.findings import percentile
from .reading import Reader
from .waterfall import N_PLUS_ONE_RUNS

MAX_RUNS = 200_000  # that are added up for one answer: the newest, as far as whole traces go
MAX_UNSETTLED = 200  # traces whose callers are looked up for one answer: those of the others are in the table
# Names the statements, so that each is looked up in the index of runs from its first time on.
_OF_QUERIES = "s.query IS NOT NULL AND s.query IN (SELECT id FROM query)"
_DURATION = "MAX(s.end_ns - s.start_ns, 0)"


@dataclass(frozen=True)
class QueryFilter:
    """Which runs."""

    query: int | None = None
    service: str | None = None
    operation: str | None = None
    text: str = ""
    since_ns: int = 0
    until_ns: int = (1 << 62) - 1
    sort: str = "-total"
    limit: int = 100

    def condition(self) -> tuple[str, list[Any]]:
        """Of rows of span, named s, with the values that it takes."""
        parts, values = [_OF_QUERIES, "s.start_ns BETWEEN ? AND ?"], [self.since_ns, self.until_ns]
        if self.query is not None:
            parts[0] = "s.query IS NOT NULL"
        given: tuple[tuple[str, Any], ...] = (
            ("s.query = ?", self.query),
            ("s.query IN (SELECT id FROM query WHERE instr(lower(statement), ?))", self.text.lower() or None),
            ("s.resource IN (SELECT id FROM resource WHERE service = ?)", self.service),
            ("s.trace_id IN (SELECT trace_id FROM trace WHERE operation = ?)", self.operation),
        )
        for condition, value in given:
            if value is not None:
                parts.append(condition)
                values.append(value)
        return " AND ".join(parts), values


def newest(connection: sqlite3.Connection, chosen: QueryFilter) -> tuple[QueryFilter, int | None]:
    """The same, of so many runs as can be added up; and the time before which runs are left out, if any are."""
    runs = 0
    for start_ns, queries in connection.execute(
        "SELECT start_ns, queries FROM trace WHERE start_ns <= ? ORDER BY start_ns DESC", (chosen.until_ns,)
    ):
        if start_ns < chosen.since_ns:
            break
        runs += queries
        if runs > MAX_RUNS:
            return replace(chosen, since_ns=start_ns), start_ns
    return chosen, None


class CallerRuns(NamedTuple):
    """How many runs one caller asked for."""

    frame: int
    exact: bool
    runs: int


class Repeated(NamedTuple):
    """The most runs under one span."""

    runs: int
    trace_id: bytes
    parent_id: bytes


@dataclass
class Sums:
    """All runs of one statement."""

    query: int
    runs: int
    errors: int
    total_ns: int
    max_ns: int
    p50_ns: int = 0
    p95_ns: int = 0


class QuerySums:
    """Answers about the statements of one filter."""

    def __init__(self, connection: sqlite3.Connection, chosen: QueryFilter) -> None:
        self._connection = connection
        self._where, self._values = chosen.condition()
        rows = self._rows(f"SELECT s.query, COUNT(*), SUM(s.error), SUM({_DURATION}), MAX({_DURATION})", "s.query")
        self.all = {row[0]: Sums(*row) for row in rows}

    def _rows(self, select: str, group: str, source: str = "span s", more: str = "", rest: str = "") -> Iterator[Any]:
        statement = f"{select} FROM {source} WHERE {self._where} {more} GROUP BY {group} {rest}"
        return self._connection.execute(statement, self._values)

    def add_percentiles(self, queries: list[int]) -> None:
        """The p50 and p95 of these."""
        for query in queries:
            durations = array(
                "q",
                (
                    row[0]
                    for row in self._connection.execute(
                        f"SELECT {_DURATION} FROM span s WHERE {self._where} AND s.query = ?", [*self._values, query]
                    )
                ),
            )
            ascending = sorted(durations)
            sums = self.all[query]
            sums.p50_ns, sums.p95_ns = percentile(ascending, 0.5), percentile(ascending, 0.95)

    def callers(self, reader: Reader) -> dict[int, list[CallerRuns]]:
        """Of each statement, exact and sampled ones apart, the most runs first."""
        counts: dict[tuple[int, int, bool], int] = {}
        for query, caller, sampled, n in self._rows(
            "SELECT s.query, s.caller, s.sampled_caller, COUNT(*)", "s.query, s.caller, s.sampled_caller"
        ):
            frame = sampled if caller is None else caller
            if frame is not None:
                key = query, frame, caller is not None
                counts[key] = counts.get(key, 0) + n
        for _, _, query, frame in self.unsettled(reader):
            counts[query, frame, False] = counts.get((query, frame, False), 0) + 1
        found: dict[int, list[CallerRuns]] = {}
        for (query, frame, exact), n in counts.items():
            found.setdefault(query, []).append(CallerRuns(frame, exact, n))
        for callers in found.values():
            callers.sort(key=lambda caller: (-caller.runs, not caller.exact, caller.frame))
        return found

    def unsettled(self, reader: Reader) -> Iterator[tuple[bytes, bytes, int, int]]:
        """Trace, span, statement and caller of runs whose traces have just changed."""
        rows = self._connection.execute(
            "SELECT s.trace_id, s.span_id, s.query, p.stack, SUM(MAX(p.wall_ns, p.cpu_ns)) "
            "FROM (SELECT trace_id FROM trace WHERE summary IS NULL LIMIT ?) u "
            "CROSS JOIN span s ON s.trace_id = u.trace_id "
            "CROSS JOIN sample p ON p.trace_id = s.trace_id AND p.span_id = s.span_id "
            f"WHERE s.caller IS NULL AND {self._where} GROUP BY s.trace_id, s.span_id, p.stack",
            [MAX_UNSETTLED, *self._values],
        )
        heaviest: dict[tuple[bytes, bytes, int], tuple[int, int]] = {}
        for trace_id, span_id, query, stack, time in rows:
            key = trace_id, span_id, query
            heaviest[key] = max(heaviest.get(key, (-1, 0)), (time, -stack))
        callers = reader.callers_of(self._connection, {-stack for _, stack in heaviest.values()})
        for key, (_, stack) in heaviest.items():
            if -stack in callers:
                yield (*key, callers[-stack])

    def operations(self) -> dict[int, list[tuple[str, str, int, int]]]:
        """Of each statement: service and name of requests, runs and their time; the most time first."""
        rows = self._rows(
            f"SELECT s.query, r.service, COALESCE(t.operation, ''), COUNT(*), SUM({_DURATION})",
            "1, 2, 3",
            "span s JOIN resource r ON r.id = s.resource LEFT JOIN trace t ON t.trace_id = s.trace_id",
        )
        found: dict[int, list[tuple[str, str, int, int]]] = {}
        for query, *operation in rows:
            found.setdefault(query, []).append(tuple(operation))
        for operations in found.values():
            operations.sort(key=lambda item: (-item[3], item[:2]))
        return found

    def repeated(self) -> dict[int, Repeated]:
        """The statements that one span runs so often that it is a sign of an N+1."""
        found: dict[int, Repeated] = {}
        for query, trace_id, parent_id, n in self._rows(
            "SELECT s.query, s.trace_id, s.parent_id, COUNT(*) AS n",
            "s.query, s.trace_id, s.parent_id",
            more="AND s.parent_id IS NOT NULL",
            rest=f"HAVING n >= {N_PLUS_ONE_RUNS}",
        ):
            if query not in found or n > found[query].runs:
                found[query] = Repeated(n, trace_id, parent_id)
        return found
