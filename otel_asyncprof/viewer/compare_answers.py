"""Answers about two sides: spans, traces, operations or statements."""

import sqlite3
from dataclasses import dataclass, replace
from typing import Any

from .comparison import Half, compared, over_represented
from .lane_answers import span_holders_json
from .list_answers import root_attributes
from .reading import Reader
from .selection import ALL, CHILDREN, PARTS, TRACE, Choice, Chosen, NothingThere, chosen
from .splits import rounded
from .trace_answers import found_trace

MAX_TRACES_OF_SIDE = 1000
SHOWN_HOLDERS = 5


class BadSelector(ValueError):
    """What is no selector."""


@dataclass(frozen=True)
class _Side:
    choice: Choice
    found: Chosen
    json: dict[str, Any]
    roots: list[tuple[bytes, bytes]]
    holders: list[dict[str, Any]]


def choice_of(selector: str, within: Choice) -> Choice:
    """What a selector stands for; BadSelector when it is none."""
    kind, _, rest = selector.partition(":")
    try:
        if kind == "span":
            trace, _, span = rest.partition(":")
            return replace(within, trace=identifier(trace, 16), span=identifier(span, 8), scope=CHILDREN)
        if kind == "trace":
            return replace(within, trace=identifier(rest, 16), scope=TRACE)
        if kind == "query":
            return replace(within, query=int(rest))
        if kind == "op":
            operation, _, part = rest.rpartition("@")
            service, slash, name = operation.partition("/")
            if part in PARTS and slash:
                return replace(within, operation=(service, name), at=part)
    except ValueError:
        pass
    raise BadSelector(
        f"{selector[:80]!r} selects nothing: it is span:TRACE:SPAN, trace:TRACE, query:ID or "
        "op:SERVICE/NAME@all|slow|fast"
    )


def identifier(text: str, size: int) -> bytes:
    """An id of so many bytes; ValueError when it is none."""
    if len(text) != 2 * size:
        raise ValueError(f"an id has {2 * size} hexadecimal digits")
    return bytes.fromhex(text)


def comparison_json(connection: sqlite3.Connection, reader: Reader, a: str, b: str, within: Choice) -> dict[str, Any]:
    """Both sides, each per run."""
    sides = [_side(connection, reader, selector, choice_of(selector, within)) for selector in (a, b)]
    frames = {**sides[0].found.frames, **sides[1].found.frames}
    halves = [Half(side.found.weights, side.found.runs) for side in sides]
    attributes = [root_attributes(connection, side.roots[:MAX_TRACES_OF_SIDE]) for side in sides]
    return {
        "a": sides[0].json,
        "b": sides[1].json,
        **compared(halves[0], halves[1], frames),
        "attributes": over_represented(attributes[0], attributes[1]) if all(attributes) else [],
        "holders": {"a": sides[0].holders, "b": sides[1].holders},
    }


def _side(connection: sqlite3.Connection, reader: Reader, selector: str, choice: Choice) -> _Side:
    found = chosen(connection, reader, choice)
    runs = max(found.runs, 1)
    split: dict[str, float] = {}
    for weight in found.weights.values():
        for state, value in zip(("running", "waiting", "ready", "blocked"), weight.states, strict=True):
            split[state] = split.get(state, 0.0) + value / runs
    holders: list[dict[str, Any]] = []
    if choice.trace is not None:
        data = found_trace(connection, reader, choice.trace)
        holders = span_holders_json(connection, reader, data, choice.span)["holders"][:SHOWN_HOLDERS]
    roots, queries, label = _described(connection, reader, choice, found)
    side = {
        "selector": selector,
        "label": label,
        "runs": found.runs,
        "mean_us": found.duration_ns // runs // 1000,
        "split": rounded(split, found.duration_ns // runs),
        "samples": found.samples,
        "queries_per_run": round(queries / runs, 2),
    }
    return _Side(choice, found, side, roots, holders)


def _described(
    connection: sqlite3.Connection, reader: Reader, choice: Choice, found: Chosen
) -> tuple[list[tuple[bytes, bytes]], int, str]:
    """The spans whose attributes count, the number of queries, and words for people."""
    if choice.query is not None:
        row = connection.execute("SELECT statement FROM query WHERE id = ?", (choice.query,)).fetchone()
        rows = connection.execute(
            "SELECT trace_id, span_id FROM span WHERE query = ? ORDER BY start_ns DESC LIMIT ?",
            (choice.query, MAX_TRACES_OF_SIDE),
        )
        return rows.fetchall(), found.runs, row[0] if row else ""
    roots, queries = [], 0
    for trace_id in found.traces:
        row = connection.execute("SELECT root, queries FROM trace WHERE trace_id = ?", (trace_id,)).fetchone()
        if row is not None:
            roots.append((trace_id, row[0]))
            queries += row[1]
    if choice.trace is None or choice.operation is not None:
        part = {"slow": ", p95 and more", "fast": ", p50 and less", ALL: ""}[choice.at]
        return roots, queries, f"{choice.operation[1] if choice.operation else ''}{part}"
    data = found_trace(connection, reader, choice.trace)
    if choice.span is None:
        return roots, queries, data.spans[0].row.name
    index = data.index_of.get(choice.span)
    if index is None:
        raise NothingThere("this span is not stored: it may not have arrived yet")
    below = data.below(index)
    queries = sum(1 for number in below if data.spans[number].row.query is not None)
    return [(choice.trace, choice.span)], queries, data.spans[index].row.name
