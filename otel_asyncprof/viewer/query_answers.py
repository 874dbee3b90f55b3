"""Answers about statements: which took the most time, and who asked for them."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..formats.stack_sample import Frame
from .decoding import example_in
from .query_groups import CallerGroup, Group, Run
from .query_sums import CallerRuns, QueryFilter, QuerySums, Repeated, Sums, newest
from .reading import Reader
from .selection import NothingThere
from .summaries import n_plus_one_json
from .trace_answers import caller_json

MAX_RUNS = 50_000  # of one statement that are looked at one by one: the newest
SHOWN_CALLERS = 3
SHOWN_RUNS = 20
SORTS = {
    "-total": lambda sums: -sums.total_ns,
    "-runs": lambda sums: -sums.runs,
    "-p50": lambda sums: -sums.p50_ns,
    "-p95": lambda sums: -sums.p95_ns,
    "-max": lambda sums: -sums.max_ns,
}

_RUNS = """SELECT s.trace_id, s.span_id, s.start_ns, MAX(s.end_ns - s.start_ns, 0),
    COALESCE(t.operation, ''), r.service, COALESCE(s.caller, s.sampled_caller), s.caller IS NULL
    FROM span s JOIN resource r ON r.id = s.resource LEFT JOIN trace t ON t.trace_id = s.trace_id WHERE"""


def queries_json(connection: sqlite3.Connection, reader: Reader, chosen: QueryFilter) -> dict[str, Any]:
    """The list."""
    chosen, since_ns = newest(connection, chosen)
    sums = QuerySums(connection, chosen)
    if chosen.sort in ("-p50", "-p95"):
        sums.add_percentiles(list(sums.all))
    ordered = sorted(sums.all.values(), key=lambda one: (SORTS[chosen.sort](one), -one.total_ns, one.query))
    shown = ordered[: chosen.limit]
    if chosen.sort not in ("-p50", "-p95"):
        sums.add_percentiles([one.query for one in shown])
    return {
        "total": len(ordered),
        "since_us": since_ns // 1000 if since_ns is not None else None,
        "queries": _queries_json(connection, reader, sums, shown),
    }


def _queries_json(
    connection: sqlite3.Connection, reader: Reader, sums: QuerySums, shown: Sequence[Sums]
) -> list[dict[str, Any]]:
    callers, operations, repeated = sums.callers(reader), sums.operations(), sums.repeated()
    frames = reader.frames(connection, {caller.frame for of_query in callers.values() for caller in of_query})
    return [
        _query_json(
            connection, one, callers.get(one.query, []), operations.get(one.query, []), repeated.get(one.query), frames
        )
        for one in shown
    ]


def _query_json(
    connection: sqlite3.Connection,
    sums: Sums,
    callers: Sequence[CallerRuns],
    operations: Sequence[tuple[str, str, int, int]],
    repeated: Repeated | None,
    frames: Mapping[int, Frame],
) -> dict[str, Any]:
    statement, system = connection.execute("SELECT statement, system FROM query WHERE id = ?", (sums.query,)).fetchone()
    exact = sum(caller.runs for caller in callers if caller.exact)
    sampled = sum(caller.runs for caller in callers if not caller.exact)
    return {
        "query_id": sums.query,
        "statement": statement,
        "system": system,
        "runs": sums.runs,
        "errors": sums.errors,
        "total_us": sums.total_ns // 1000,
        "p50_us": sums.p50_ns // 1000,
        "p95_us": sums.p95_ns // 1000,
        "max_us": sums.max_ns // 1000,
        "n_plus_one": n_plus_one_json(sums.query, statement, repeated.runs, repeated.parent_id, repeated.trace_id)
        if repeated
        else None,
        "callers": [
            {"caller": caller_json(frames[caller.frame], caller.exact), "runs": caller.runs}
            for caller in callers[:SHOWN_CALLERS]
        ],
        "n_callers": len(callers),
        "runs_exact": exact,
        "runs_sampled": sampled,
        "runs_unknown": sums.runs - exact - sampled,
        "operations": [
            {"service": service, "name": name, "runs": n}
            for service, name, n, _ in sorted(operations, key=lambda item: -item[2])[:SHOWN_CALLERS]
        ],
    }


def query_json(connection: sqlite3.Connection, reader: Reader, chosen: QueryFilter) -> dict[str, Any]:
    """One statement."""
    chosen, older = _newest(connection, chosen)
    sums = QuerySums(connection, chosen)
    if not sums.all:
        raise NothingThere("no run of this statement is stored")
    sums.add_percentiles(list(sums.all))
    where, values = chosen.condition()
    group = Group(Run(*row) for row in connection.execute(f"{_RUNS} {where}", values))
    _add_unsettled(sums, reader, group)
    callers = group.callers()
    frames = reader.frames(connection, {run.caller for run in group.runs if run.caller is not None})
    slowest = group.runs[-1]
    stored = connection.execute(
        "SELECT d.content, s.name FROM detail d JOIN span s USING(trace_id, span_id) "
        "WHERE d.trace_id = ? AND d.span_id = ?",
        (slowest.trace_id, slowest.span_id),
    ).fetchone()
    return {
        **_queries_json(connection, reader, sums, list(sums.all.values()))[0],
        "older_runs": older,
        "example": example_in(json.loads(stored[0]).get("attributes", {}), stored[1]) if stored else "",
        "all_callers": [_caller_json(caller, frames) for caller in callers],
        "slowest": [_run_json(run, frames) for run in reversed(group.runs[-SHOWN_RUNS:])],
        "all_operations": [
            {"service": service, "name": name, "runs": n, "total_us": time // 1000}
            for (service, name), n, time in group.operations()
        ],
        "histogram": [{"upto_us": limit, "runs": n} for limit, n in group.histogram()],
    }


def _newest(connection: sqlite3.Connection, chosen: QueryFilter) -> tuple[QueryFilter, int]:
    """The same, of so many runs at most; and how many older ones are left out."""
    where, values = chosen.condition()
    runs = connection.execute(f"SELECT COUNT(*) FROM span s WHERE {where}", values).fetchone()[0]
    if runs <= MAX_RUNS:
        return chosen, 0
    since = connection.execute(
        f"SELECT s.start_ns FROM span s WHERE {where} ORDER BY s.start_ns DESC LIMIT 1 OFFSET ?", [*values, MAX_RUNS]
    ).fetchone()[0]
    return replace(chosen, since_ns=since + 1), runs - MAX_RUNS


def _add_unsettled(sums: QuerySums, reader: Reader, group: Group) -> None:
    """Callers of runs whose traces have just changed: they are not in the table yet."""
    callers = {(trace_id, span_id): frame for trace_id, span_id, _, frame in sums.unsettled(reader)}
    for run in group.runs if callers else ():
        if run.caller is None:
            run.caller = callers.get((run.trace_id, run.span_id))


def _caller_json(caller: CallerGroup, frames: Mapping[int, Frame]) -> dict[str, Any]:
    group, slowest = Group(caller.runs), caller.runs[-1]
    return {
        "caller": caller_json(frames[caller.frame], caller.exact),
        "runs": len(caller.runs),
        "total_us": group.total_ns // 1000,
        "p95_us": group.percentile_ns(0.95) // 1000,
        "operations": [{"service": service, "name": name, "runs": n} for (service, name), n in caller.operations],
        "slowest": {
            "trace_id": slowest.trace_id.hex(),
            "span_id": slowest.span_id.hex(),
            "duration_us": slowest.duration_ns // 1000,
        },
    }


def _run_json(run: Run, frames: Mapping[int, Frame]) -> dict[str, Any]:
    return {
        "trace_id": run.trace_id.hex(),
        "span_id": run.span_id.hex(),
        "start_us": run.start_ns // 1000,
        "duration_us": run.duration_ns // 1000,
        "operation": run.operation,
        "service": run.service,
        "caller": caller_json(frames[run.caller], run.exact) if run.caller is not None else None,
    }
