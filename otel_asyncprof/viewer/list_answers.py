"""Answers about many traces: the list with its filters and scatter, and operations."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..analysis.findings import percentile
from .reading import MANY_SPANS, traces_with
from .summaries import summary

MAX_SCATTER = 5000
MAX_OPERATIONS = 200
MAX_WORKED_OUT = 200  # summaries that are missing and made for one answer
SORTS = {
    "-duration": "duration_ns DESC",
    "duration": "duration_ns",
    "-start": "start_ns DESC",
    "start": "start_ns",
    "-spans": "spans DESC",
    "-queries": "queries DESC",
}
_ATTRIBUTE = """EXISTS(SELECT 1 FROM detail d, json_each(d.content, '$.attributes') j WHERE d.trace_id = t.trace_id
    AND j.key = ? AND CASE WHEN j.type IN ('true', 'false') THEN j.type ELSE CAST(j.value AS TEXT) END = ?)"""
_TEXT = """(instr(lower(t.operation), ?) OR EXISTS(SELECT 1 FROM span s LEFT JOIN query q ON q.id = s.query
    WHERE s.trace_id = t.trace_id AND (instr(lower(s.name), ?) OR instr(lower(q.statement), ?))))"""
_ROW = """t.trace_id, t.root, t.operation, t.service, t.start_ns, t.duration_ns, t.spans, t.errors, t.queries,
    t.samples, t.complete, t.summary"""


@dataclass(frozen=True)
class TraceFilter:
    """Which traces; empty and None: all."""

    service: str | None = None
    operation: str | None = None
    text: str = ""
    min_ns: int | None = None
    max_ns: int | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    errors_only: bool = False
    attributes: tuple[tuple[str, str], ...] = ()
    function: str = ""
    file: str | None = None
    query: int | None = None
    sort: str = "-duration"
    limit: int = 100
    offset: int = 0


def _where(
    chosen: TraceFilter, with_function: Iterable[bytes], *, with_operation: bool = True
) -> tuple[str, list[Any]]:
    conditions, values = ["1"], []
    simple = (
        ("t.service = ?", chosen.service),
        ("t.operation = ?", chosen.operation if with_operation else None),
        ("t.duration_ns >= ?", chosen.min_ns),
        ("t.duration_ns <= ?", chosen.max_ns),
        ("t.start_ns >= ?", chosen.since_ns),
        ("t.start_ns <= ?", chosen.until_ns),
        ("EXISTS(SELECT 1 FROM span s WHERE s.trace_id = t.trace_id AND s.query = ?)", chosen.query),
    )
    for condition, value in simple:
        if value is not None:
            conditions.append(condition)
            values.append(value)
    if chosen.errors_only:
        conditions.append("t.errors > 0")
    for key, value in chosen.attributes:
        conditions.append(_ATTRIBUTE)
        values += [key, value]
    if chosen.text:
        conditions.append(_TEXT)
        values += [chosen.text.lower()] * 3
    if chosen.function:
        conditions.append("hex(t.trace_id) IN (SELECT value FROM json_each(?))")
        values.append(json.dumps([trace_id.hex().upper() for trace_id in with_function]))
    return " AND ".join(conditions), values


def trace_list_json(connection: sqlite3.Connection, chosen: TraceFilter, revision: int) -> dict[str, Any]:
    """The list."""
    with_function = traces_with(connection, chosen.function, chosen.file) if chosen.function else set()
    where, values = _where(chosen, with_function)
    operations = _operations(connection, chosen, with_function)
    matching = [one for one in operations if chosen.operation in (None, one["name"])]
    scatter = connection.execute(
        f"SELECT t.trace_id, t.start_ns, t.duration_ns, t.errors > 0 FROM trace t WHERE {where} "
        "ORDER BY t.duration_ns DESC LIMIT ?",
        [*values, MAX_SCATTER],
    ).fetchall()
    order = SORTS[chosen.sort]
    rows = connection.execute(
        f"SELECT {_ROW} FROM trace t WHERE {where} ORDER BY t.{order}, t.trace_id LIMIT ? OFFSET ?",
        [*values, chosen.limit, chosen.offset],
    ).fetchall()
    left = MAX_WORKED_OUT
    listed = []
    for row in rows:
        missing = row[-1] is None
        worked_out = not missing or (left > 0 and row[6] < MANY_SPANS)
        listed.append(_row_json(connection, row, worked_out=worked_out))
        left -= missing
    return {
        "revision": revision,
        "total": sum(one["runs"] for one in matching),
        "traces": listed,
        "scatter": {
            "start_us": [row[1] // 1000 for row in scatter],
            "duration_us": [row[2] // 1000 for row in scatter],
            "error": [row[3] for row in scatter],
            "trace_id": [row[0].hex() for row in scatter],
        },
        "operations": operations[:MAX_OPERATIONS],
    }


def _row_json(connection: sqlite3.Connection, row: Sequence[Any], *, worked_out: bool) -> dict[str, Any]:
    trace_id, root, operation, service, start, duration, spans, errors, queries, samples, complete, stored = row
    found = summary(connection, trace_id, root, stored) if worked_out else {}
    return {
        "trace_id": trace_id.hex(),
        "root_span_id": root.hex(),
        "operation": operation,
        "service": service,
        "start_us": start // 1000,
        "duration_us": duration // 1000,
        "spans": spans,
        "errors": errors,
        "queries": queries,
        "samples": samples,
        "split": found.get("split"),
        "n_plus_one": found.get("n_plus_one"),
        "complete": bool(complete),
    }


def operations_json(connection: sqlite3.Connection, chosen: TraceFilter) -> list[dict[str, Any]]:
    """The operations of the traces that match, but for the operation itself; the most time first."""
    return _operations(connection, chosen, ())[:MAX_OPERATIONS]


def _operations(
    connection: sqlite3.Connection, chosen: TraceFilter, with_function: Iterable[bytes]
) -> list[dict[str, Any]]:
    """All of them; those that are shown with their percentiles."""
    where, values = _where(chosen, with_function, with_operation=False)
    rows = connection.execute(
        "SELECT t.service, t.operation, COUNT(*), SUM(t.errors > 0), SUM(t.duration_ns), MAX(t.duration_ns) "
        f"FROM trace t WHERE {where} GROUP BY t.service, t.operation ORDER BY 5 DESC, 1, 2",
        values,
    ).fetchall()
    one_of = (
        f"SELECT t.duration_ns FROM trace t WHERE {where} AND t.service = ? AND t.operation = ? "
        "ORDER BY t.duration_ns LIMIT 1 OFFSET ?"
    )
    operations: list[dict[str, Any]] = []
    for service, name, runs, errors, total, longest in rows:
        found = {"service": service, "name": name, "runs": runs, "errors": errors, "total_us": total // 1000}
        for key, share in (("p50_us", 0.5), ("p95_us", 0.95)) if len(operations) < MAX_OPERATIONS else ():
            rank = percentile(range(runs), share)
            found[key] = connection.execute(one_of, [*values, service, name, rank]).fetchone()[0] // 1000
        operations.append(found | {"max_us": longest // 1000})
    return operations


def resource_services(connection: sqlite3.Connection) -> list[str]:
    """The names of all services."""
    return [row[0] for row in connection.execute("SELECT DISTINCT service FROM resource ORDER BY service")]


def root_attributes(
    connection: sqlite3.Connection, traces: Iterable[tuple[bytes, bytes]]
) -> list[list[tuple[str, str]]]:
    """Keys and values of some spans, as text."""
    found = []
    for trace_id, span_id in traces:
        row = connection.execute(
            "SELECT content FROM detail WHERE trace_id = ? AND span_id = ?", (trace_id, span_id)
        ).fetchone()
        attributes = json.loads(row[0]).get("attributes", {}) if row else {}
        found.append([(key, str(value)[:200]) for key, value in attributes.items()])
    return found
