"""Answers about statements: which took the most time, and who asked for them."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..formats.stack_sample import Frame
from .decoding import example_in
from .query_groups import CallerGroup, Group, Run, grouped
from .reading import Reader
from .selection import NothingThere
from .summaries import n_plus_one_json
from .trace_answers import caller_json

MAX_RUNS = 200_000  # that are read for one answer: the newest
SHOWN_CALLERS = 3
SHOWN_RUNS = 20
SORTS = ("-total", "-runs", "-p50", "-p95", "-max")

_RUNS = """SELECT s.query, s.trace_id, s.span_id, s.parent_id, s.start_ns, MAX(s.end_ns - s.start_ns, 0), s.error,
    COALESCE(t.operation, ''), r.service, s.caller FROM span s JOIN resource r ON r.id = s.resource
    LEFT JOIN trace t ON t.trace_id = s.trace_id WHERE"""
# Of runs that do not say themselves who asked for them: the time on each stack.
_SAMPLED = """SELECT s.trace_id, s.span_id, p.stack, SUM(p.wall_ns + p.cpu_ns) FROM span s JOIN sample p
    ON p.trace_id = s.trace_id AND p.span_id = s.span_id WHERE s.caller IS NULL AND"""


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


def groups_of(connection: sqlite3.Connection, reader: Reader, chosen: QueryFilter) -> list[Group]:
    """The statements that match, each with its runs and their callers."""
    condition = "s.query IS NOT NULL AND s.start_ns BETWEEN ? AND ?"
    values: list[Any] = [chosen.since_ns, chosen.until_ns]
    if chosen.query is not None:
        condition += " AND s.query = ?"
        values.append(chosen.query)
    elif chosen.text:
        condition += " AND s.query IN (SELECT id FROM query WHERE instr(lower(statement), ?))"
        values.append(chosen.text.lower())
    narrower, more = condition, list(values)
    if chosen.service is not None:
        narrower += " AND r.service = ?"
        more.append(chosen.service)
    if chosen.operation is not None:
        narrower += " AND t.operation = ?"
        more.append(chosen.operation)
    rows = connection.execute(f"{_RUNS} {narrower} ORDER BY s.start_ns DESC LIMIT {MAX_RUNS}", more)
    runs = [Run(*row) for row in rows]
    _add_sampled(connection, reader, runs, condition, values)
    return grouped(runs)


def _add_sampled(
    connection: sqlite3.Connection, reader: Reader, runs: list[Run], condition: str, values: list[Any]
) -> None:
    heaviest: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    for trace_id, span_id, stack, time in connection.execute(
        f"{_SAMPLED} {condition} GROUP BY s.trace_id, s.span_id, p.stack", values
    ):
        if time > heaviest.get((trace_id, span_id), (-1, 0))[0]:
            heaviest[trace_id, span_id] = time, stack
    callers = reader.callers_of(connection, {stack for _, stack in heaviest.values()})
    for run in runs:
        if run.caller is None and (found := heaviest.get((run.trace_id, run.span_id))) is not None:
            run.caller, run.is_sampled = callers.get(found[1]), True


def queries_json(connection: sqlite3.Connection, reader: Reader, chosen: QueryFilter) -> dict[str, Any]:
    """The list."""
    groups = groups_of(connection, reader, chosen)
    keys = {
        "-runs": lambda group: -len(group.runs),
        "-p50": lambda group: -group.percentile_ns(0.5),
        "-p95": lambda group: -group.percentile_ns(0.95),
        "-max": lambda group: -group.durations_ns[-1],
        "-total": lambda group: -group.total_ns,
    }
    groups.sort(key=keys[chosen.sort])
    shown = groups[: chosen.limit]
    return {"total": len(groups), "queries": [_query_json(connection, reader, group) for group in shown]}


def _query_json(connection: sqlite3.Connection, reader: Reader, group: Group) -> dict[str, Any]:
    statement, system = connection.execute(
        "SELECT statement, system FROM query WHERE id = ?", (group.query,)
    ).fetchone()
    callers, durations = group.callers(), group.durations_ns
    frames = reader.frames(connection, {caller.frame for caller in callers})
    repeated = group.most_repeated()
    exact = sum(len(caller.runs) for caller in callers if caller.exact)
    sampled = sum(len(caller.runs) for caller in callers if not caller.exact)
    return {
        "query_id": group.query,
        "statement": statement,
        "system": system,
        "runs": len(durations),
        "errors": group.n_errors,
        "total_us": group.total_ns // 1000,
        "p50_us": group.percentile_ns(0.5) // 1000,
        "p95_us": group.percentile_ns(0.95) // 1000,
        "max_us": durations[-1] // 1000,
        "n_plus_one": n_plus_one_json(
            group.query, statement, repeated[0], repeated[1].parent_id or b"", repeated[1].trace_id
        )
        if repeated
        else None,
        "callers": [
            {"caller": caller_json(frames[caller.frame], caller.exact), "runs": len(caller.runs)}
            for caller in callers[:SHOWN_CALLERS]
        ],
        "n_callers": len(callers),
        "runs_exact": exact,
        "runs_sampled": sampled,
        "runs_unknown": len(durations) - exact - sampled,
        "operations": [
            {"service": service, "name": name, "runs": n}
            for (service, name), n, _ in sorted(group.operations(), key=lambda item: -item[1])[:SHOWN_CALLERS]
        ],
    }


def query_json(connection: sqlite3.Connection, reader: Reader, chosen: QueryFilter) -> dict[str, Any]:
    """One statement."""
    groups = groups_of(connection, reader, chosen)
    if not groups:
        raise NothingThere("no run of this statement is stored")
    group = groups[0]
    callers = group.callers()
    frames = reader.frames(connection, {run.caller for run in group.runs if run.caller is not None})
    slowest = group.runs[-1]
    stored = connection.execute(
        "SELECT d.content, s.name FROM detail d JOIN span s USING(trace_id, span_id) "
        "WHERE d.trace_id = ? AND d.span_id = ?",
        (slowest.trace_id, slowest.span_id),
    ).fetchone()
    return {
        **_query_json(connection, reader, group),
        "example": example_in(json.loads(stored[0]).get("attributes", {}), stored[1]) if stored else "",
        "all_callers": [_caller_json(caller, frames) for caller in callers],
        "slowest": [_run_json(run, frames) for run in reversed(group.runs[-SHOWN_RUNS:])],
        "all_operations": [
            {"service": service, "name": name, "runs": n, "total_us": time // 1000}
            for (service, name), n, time in group.operations()
        ],
        "histogram": [{"upto_us": limit, "runs": n} for limit, n in group.histogram()],
    }


def _caller_json(caller: CallerGroup, frames: Mapping[int, Frame]) -> dict[str, Any]:
    group, slowest = Group(0, caller.runs), caller.runs[-1]
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
