"""Answers about one trace: its spans with their splits, and one span in detail."""

import json
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from ..analysis.findings import percentile
from ..analysis.places import kind_of
from ..formats.stack_sample import Frame
from .decoding import CLIENT, browser_safe
from .reading import MAX_EXPORT_NS, Reader, TraceData
from .selection import NothingThere
from .splits import heaviest_stacks, rounded
from .summaries import n_plus_one_json
from .thin import Facts, explanation
from .waterfall import critical_path, repeated

KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
MAX_RUNS = 10_000  # of an operation that are compared with


def frame_json(frame: Frame) -> dict[str, Any]:
    """As the API sends it."""
    return {
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
        "first_line": frame.first_line,
        "kind": kind_of(frame.file),
    }


def caller_json(frame: Frame, exact: bool) -> dict[str, Any]:
    """A caller, exactly known or not."""
    return {**frame_json(frame), "exact": exact}


def found_trace(connection: sqlite3.Connection, reader: Reader, trace_id: bytes) -> TraceData:
    """A trace; NothingThere when it is not stored."""
    data = reader.trace(connection, trace_id)
    if data is None:
        raise NothingThere("this trace is not stored: it may not have arrived yet, or has made room for newer ones")
    return data


def trace_json(connection: sqlite3.Connection, reader: Reader, data: TraceData) -> dict[str, Any]:
    """The whole trace."""
    rows = [span.row for span in data.spans]
    return {
        "trace_id": data.trace_id.hex(),
        "start_us": data.begin_ns // 1000,
        "duration_us": (data.end_ns - data.begin_ns) // 1000,
        "services": sorted({row.service for row in rows}),
        "spans": _spans_json(connection, reader, data, range(len(data.spans))),
        "samples": sum(sample.n for sample in data.samples),
        "period_us": data.period_ns // 1000,
        "timeline": data.timeline,
        "critical_path": critical_path(data.spans),
        "n_plus_one": [
            n_plus_one_json(item.query, item.statement, item.runs, item.parent_id, data.trace_id)
            for item in repeated(rows)
        ],
    }


def _spans_json(
    connection: sqlite3.Connection, reader: Reader, data: TraceData, indices: Sequence[int]
) -> list[dict[str, Any]]:
    callers = _callers(connection, reader, data, indices)
    found = []
    for index in indices:
        span, times, split = data.spans[index], data.times[index], data.splits[index]
        row = span.row
        tree = rounded(split.tree, times.duration_ns)
        found.append(
            {
                "span_id": row.span_id.hex(),
                "parent": span.parent,
                "depth": span.depth,
                "name": row.name,
                "service": row.service,
                "kind": KINDS[row.kind],
                "start_us": (row.start_ns - data.begin_ns) // 1000,
                "duration_us": times.duration_ns // 1000,
                "error": bool(row.is_error),
                "statement": row.statement,
                "query_id": row.query,
                "caller": callers.get(index),
                "samples": split.samples,
                "split": tree,
                "own": {**tree, "children_us": 0}
                if split.own is split.tree
                else rounded(split.own, times.duration_ns, own=True),
                "cpu_us": split.cpu_ns // 1000,
            }
        )
    return found


def _callers(
    connection: sqlite3.Connection, reader: Reader, data: TraceData, indices: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """Of queries and other client spans: what the span says itself, else what its samples say."""
    rows = {index: data.spans[index].row for index in indices}
    exact = {index: row.caller for index, row in rows.items() if row.caller is not None}
    asked = {
        index: row.span_id
        for index, row in rows.items()
        if row.caller is None and (row.query is not None or row.kind == CLIENT)
    }
    heaviest = heaviest_stacks(data.samples, set(asked.values()))
    sampled = reader.callers_of(connection, heaviest.values())
    numbers = {index: sampled[heaviest[span]] for index, span in asked.items() if heaviest.get(span) in sampled}
    frames = reader.frames(connection, {*exact.values(), *numbers.values()})
    return {
        index: caller_json(frames[number], index in exact)
        for index, number in (exact | numbers).items()
        if number in frames
    }


def span_json(connection: sqlite3.Connection, reader: Reader, data: TraceData, span_id: bytes) -> dict[str, Any]:
    """One span with all that it carries."""
    index = data.index_of.get(span_id)
    if index is None:
        raise NothingThere("this span is not stored: it may not have arrived yet")
    row = data.spans[index].row
    stored = connection.execute(
        "SELECT content FROM detail WHERE trace_id = ? AND span_id = ?", (data.trace_id, span_id)
    ).fetchone()
    details = json.loads(stored[0]) if stored else {}
    resource = connection.execute("SELECT content FROM resource WHERE id = ?", (row.resource,)).fetchone()
    attributes = details.get("attributes", {})
    stacktrace = attributes.get("code.stacktrace")
    durations = [
        value
        for (value,) in connection.execute(
            "SELECT MAX(s.end_ns - s.start_ns, 0) FROM span s JOIN resource r ON r.id = s.resource "
            "WHERE s.name = ? AND r.service = ? LIMIT ?",
            (row.name, row.service, MAX_RUNS),
        )
    ]
    durations.sort()
    return {
        **_spans_json(connection, reader, data, [index])[0],
        "trace_id": data.trace_id.hex(),
        "trace_state": details.get("trace_state", ""),
        "status_message": browser_safe(details.get("status_message", "")),
        "attributes": browser_safe(attributes),
        "resource": browser_safe(json.loads(resource[0])) if resource else {},
        "scope": details.get("scope", ""),
        "events": [
            {"name": name, "at_us": (at - data.begin_ns) // 1000, "attributes": browser_safe(of_event)}
            for name, at, of_event in details.get("events", [])
        ],
        "links": [{"trace_id": trace, "span_id": span} for trace, span in details.get("links", [])],
        "stacktrace": browser_safe(stacktrace) if isinstance(stacktrace, str) else None,
        "thin": thin_json(connection, data, index),
        "same_operation": {
            "runs": len(durations),
            "p50_us": percentile(durations, 0.5) // 1000,
            "p95_us": percentile(durations, 0.95) // 1000,
            "max_us": percentile(durations, 1.0) // 1000,
        },
    }


def thin_json(
    connection: sqlite3.Connection, data: TraceData, index: int, samples: int | None = None
) -> dict[str, Any] | None:
    """Why a span has no or few stacks."""
    row, times = data.spans[index].row, data.times[index]
    seen = data.splits[index].samples if samples is None else samples
    around = connection.execute(
        "SELECT EXISTS(SELECT 1 FROM sample WHERE resource = ? AND last_ns BETWEEN ? AND ? AND first_ns <= ?)",
        (row.resource, row.start_ns - 10**9, row.end_ns + MAX_EXPORT_NS, row.end_ns + 10**9),
    ).fetchone()[0]
    runs, with_samples = connection.execute(
        "SELECT COUNT(*), COALESCE(SUM(EXISTS(SELECT 1 FROM sample p WHERE p.trace_id = s.trace_id AND "
        "p.span_id = s.span_id)), 0) FROM (SELECT s.trace_id, s.span_id FROM span s "
        "JOIN resource r ON r.id = s.resource WHERE s.name = ? AND r.service = ? LIMIT ?) s",
        (row.name, row.service, MAX_RUNS),
    ).fetchone()
    facts = Facts(
        duration_ns=times.duration_ns,
        ended_ns=times.end_ns,
        now_ns=time.time_ns(),
        samples=seen,
        period_ns=data.period_ns,
        has_profile=bool(around),
        timeline=data.timeline,
        runs=runs,
        runs_with_samples=with_samples,
    )
    found = explanation(facts)
    if found is None:
        return None
    return {"reason": found[0], "text": found[1], "runs_of_operation": runs, "runs_with_samples": with_samples}
