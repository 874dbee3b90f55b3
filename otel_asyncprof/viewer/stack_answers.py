"""Answers about stacks: the flame tree, the table of functions, the sandwich of one function."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from ..formats.stack_sample import Frame
from .flame import PRUNE, Functions, Weights, columns_of, frames_json, total_of
from .function_table import MAX_ROWS, function_rows
from .looks import STATES
from .selection import Chosen, NothingThere
from .splits import rounded
from .stack_filter import Pattern, callees_of, callers_of, focused, hidden, without_libraries, without_recursion
from .tree_layout import ROOT

MAX_EXAMPLES = 20


@dataclass(frozen=True)
class View:
    """How stacks are shown."""

    by_line: bool = False
    inverted: bool = False
    find: str = ""
    focus: str = ""
    hide: str = ""
    libraries: bool = True
    recursion: bool = True
    prune: float = PRUNE


def filtered(found: Chosen, view: View) -> Weights:
    """What the view leaves of the stacks."""
    weights: Weights = found.weights
    if view.focus:
        weights = focused(weights, Pattern(view.focus).among(weights, found.frames))
    if view.hide:
        weights = hidden(weights, Pattern(view.hide).among(weights, found.frames))
    if not view.libraries:
        weights = without_libraries(weights, found.frames)
    if not view.recursion:
        weights = without_recursion(weights, found.frames)
    return weights


def tree_json(found: Chosen, weights: Weights, view: View) -> dict[str, Any]:
    """The tree in columns."""
    functions = Functions(found.frames, by_line=view.by_line)
    matched, in_matching = set(), 0.0
    pattern = Pattern(view.find) if view.find else None
    if pattern is not None:
        matching = pattern.among(weights, found.frames)
        functions.know(matching)
        matched = {functions.number[frame] for frame in matching}
        in_matching = total_of(focused(weights, matching)).total
    columns = columns_of(weights, functions, inverted=view.inverted, prune=view.prune, matching=matched)
    nodes = columns["nodes"]
    nodes["frame"], frames = _used(nodes["frame"], functions)
    total = total_of(weights)
    duration = found.duration_ns or round(total.total)
    return {
        "total_us": nodes["total_us"][0],
        "duration_us": found.duration_ns // 1000,
        "samples": total.n,
        "frames": frames_json(frames),
        **columns,
        "matches": {
            "nodes": sum(nodes["match"]),
            "us": round(in_matching / 1000),
            "share": round(in_matching / total.total, 4) if total.total else 0.0,
        },
        "find_error": pattern.error if pattern else None,
        "split": rounded(dict(zip(STATES, total.states, strict=True)), duration),
    }


def _used(numbers: list[int], functions: Functions) -> tuple[list[int], list[Frame]]:
    """The functions that nodes stand for, and their numbers among these: those of light nodes are not sent."""
    used = sorted(set(numbers) - {ROOT})
    new = {ROOT: ROOT, **{number: place for place, number in enumerate(used)}}
    return [new[number] for number in numbers], [functions.frames[number] for number in used]


def functions_json(found: Chosen, weights: Weights, view: View) -> dict[str, Any]:
    """The table."""
    matching = Pattern(view.find).among(weights, found.frames) if view.find else None
    rows = function_rows(weights, found.frames, matching)
    total = total_of(weights)
    return {
        "total_us": round(total.total / 1000),
        "samples": total.n,
        "rows": [row.json() for row in rows[:MAX_ROWS]],
    }


def sandwich_json(
    connection: sqlite3.Connection, found: Chosen, weights: Weights, function: tuple[str, str], view: View
) -> dict[str, Any]:
    """One function with its callers above and its callees below."""
    rows = function_rows(weights, found.frames)
    row = next((row for row in rows if (row.frame.function, row.frame.file) == function), None)
    if row is None:
        raise NothingThere("this function is on none of these stacks")
    above = View(inverted=True, by_line=view.by_line, prune=view.prune)
    below = View(by_line=view.by_line, prune=view.prune)
    lines = sorted(row.lines.items(), key=lambda item: (-item[1], item[0]))
    return {
        "row": row.json(),
        "callers": tree_json(found, callers_of(weights, function, found.frames), above),
        "callees": tree_json(found, callees_of(weights, function, found.frames), below),
        "traces": _examples(connection, found, function),
        "lines": [[line, round(time / 1000)] for line, time in lines],
    }


def _examples(connection: sqlite3.Connection, found: Chosen, function: tuple[str, str]) -> list[dict[str, Any]]:
    """Traces with the function, those with the most time on it first."""
    frames = {number for number, frame in found.frames.items() if (frame.function, frame.file) == function}
    stacks = {stack for stack in found.weights if not frames.isdisjoint(stack)}
    numbers = [number for number, stack in found.numbered.items() if stack in stacks]
    return [
        {"trace_id": trace_id.hex(), "operation": operation, "us": time // 1000}
        for trace_id, operation, time in _most_time(connection, numbers)
    ]


def _most_time(connection: sqlite3.Connection, stacks: list[int]) -> list[tuple[bytes, str, int]]:
    totals: dict[tuple[bytes, str], int] = {}
    for begin in range(0, len(stacks), 500):
        chunk = stacks[begin : begin + 500]
        rows = connection.execute(
            "SELECT t.trace_id, t.operation, SUM(p.wall_ns) FROM sample p JOIN trace t ON t.trace_id = p.trace_id "
            f"WHERE p.stack IN ({','.join('?' * len(chunk))}) GROUP BY t.trace_id",
            chunk,
        )
        for trace_id, operation, time in rows:
            totals[trace_id, operation] = totals.get((trace_id, operation), 0) + time
    most = sorted(totals.items(), key=lambda item: -item[1])[:MAX_EXAMPLES]
    return [(trace_id, operation, time) for (trace_id, operation), time in most]
