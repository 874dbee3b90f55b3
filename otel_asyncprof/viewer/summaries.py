"""What lists say of a trace and of its queries: worked out once after its last change, and kept in their rows."""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from .reading import Reader, TraceData, read_trace
from .splits import heaviest_stacks, rounded
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


def callers_in_samples(connection: sqlite3.Connection, reader: Reader, data: TraceData) -> dict[bytes, int]:
    """For each query that does not say itself who asked for it, the caller on the stack with the most of its time."""
    asked = {span.row.span_id for span in data.spans if span.row.query is not None and span.row.caller is None}
    heaviest = heaviest_stacks(data.samples, asked)
    callers = reader.callers_of(connection, heaviest.values())
    return {span_id: callers[stack] for span_id, stack in heaviest.items() if stack in callers}


def settle(connection: sqlite3.Connection, most: int, reader: Reader, prepare: Prepare = lambda *of_trace: None) -> int:
    """Works out what is missing of traces; of how many. `prepare` gets each trace that was read for that."""
    rows = connection.execute("SELECT trace_id, root FROM trace WHERE summary IS NULL LIMIT ?", (most,)).fetchall()
    done, callers = [], []
    for trace_id, root in rows:
        data = read_trace(connection, trace_id)
        summary = json.dumps(summary_of(data, root)) if data is not None else "{}"
        if data is not None:
            prepare(connection, data)
            found = callers_in_samples(connection, reader, data)
            callers += [(caller, trace_id, span_id) for span_id, caller in found.items()]
        done.append((summary, trace_id))
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("UPDATE trace SET summary = ? WHERE trace_id = ?", done)
    connection.executemany("UPDATE span SET sampled_caller = ? WHERE trace_id = ? AND span_id = ?", callers)
    connection.execute("COMMIT")
    return len(rows)


def summary(connection: sqlite3.Connection, trace_id: bytes, root: bytes, stored: str | None) -> dict[str, Any]:
    """The stored one, else a new one."""
    if stored is not None:
        known: dict[str, Any] = json.loads(stored)
        return known
    data = read_trace(connection, trace_id)
    return summary_of(data, root) if data is not None else {}
