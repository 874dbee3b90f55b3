"""What the list says of a trace: worked out once after its last change, and kept in its row."""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from .reading import TraceData, read_trace
from .splits import rounded
from .waterfall import repeated

Prepare = Callable[[sqlite3.Connection, TraceData], object]


def summary_of(data: TraceData, root: bytes) -> dict[str, Any]:
    """The split of the root with all below it, and the statement that one span runs most often."""
    index = data.index_of[root]
    worst = next(iter(repeated([span.row for span in data.spans])), None)
    return {
        "split": rounded(data.splits[index].tree, data.times[index].duration_ns),
        "n_plus_one": n_plus_one_json(worst.query, worst.statement, worst.runs, worst.parent_id, data.trace_id)
        if worst
        else None,
    }


def n_plus_one_json(query: int, statement: str, runs: int, parent_id: bytes, trace_id: bytes) -> dict[str, Any]:
    """As the API sends it."""
    return {
        "query_id": query,
        "statement": statement,
        "runs": runs,
        "parent_span_id": parent_id.hex(),
        "trace_id": trace_id.hex(),
    }


def settle(connection: sqlite3.Connection, most: int, prepare: Prepare = lambda *of_trace: None) -> int:
    """Works out summaries that are missing; how many. `prepare` gets each trace that was read for that."""
    rows = connection.execute("SELECT trace_id, root FROM trace WHERE summary IS NULL LIMIT ?", (most,)).fetchall()
    done = []
    for trace_id, root in rows:
        data = read_trace(connection, trace_id)
        summary = json.dumps(summary_of(data, root)) if data is not None else "{}"
        if data is not None:
            prepare(connection, data)
        done.append((summary, trace_id))
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("UPDATE trace SET summary = ? WHERE trace_id = ?", done)
    connection.execute("COMMIT")
    return len(rows)


def summary(connection: sqlite3.Connection, trace_id: bytes, root: bytes, stored: str | None) -> dict[str, Any]:
    """The stored one, else a new one."""
    if stored is not None:
        known: dict[str, Any] = json.loads(stored)
        return known
    data = read_trace(connection, trace_id)
    return summary_of(data, root) if data is not None else {}
