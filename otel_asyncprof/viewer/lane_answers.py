"""Answers on the time axis: what each task did, who waited for whom, and who held the loop."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from ..analysis.places import caller_in, kind_of
from .holders import Held, holders_of, ready_times
from .lanes import CHILDREN, Lane, Piece, lanes_of
from .looks import BLOCKED, RUNNING, Look, looks_of
from .reading import ID_SEPARATOR, MAX_EXPORT_NS, SAMPLE_COLUMNS, Reader, TraceData, sample_of
from .selection import Choice, scope_of
from .span_lanes import with_unseen_spans
from .trace_answers import frame_json

MAX_HOLDERS = 50
LEAST_NS = 100_000  # a shorter time is where one task follows another
MAX_NEIGHBOURS = 20_000  # samples of other traces that are looked at
LOOK_NS = 2_000_000_000  # how much longer than a look may be a sample's end can lie behind


def lanes_json(connection: sqlite3.Connection, reader: Reader, data: TraceData) -> dict[str, Any]:
    """The lanes of a trace with the holders of the loop."""
    stacks = reader.stacks(connection, {sample.stack for sample in data.samples})
    frames = reader.frames(connection, {frame for stack in stacks.values() for frame in stack})
    parents = {span.row.span_id: span.row.parent_id for span in data.spans}
    times = {span.row.span_id: (time.begin_ns, time.end_ns) for span, time in zip(data.spans, data.times, strict=True)}
    lanes = with_unseen_spans(lanes_of(data.looks, stacks, frames, parents), parents, times)
    naming = {lane.task.process for lane in lanes if lane.task.name}  # processes whose samples name their tasks
    numbers: dict[int, int] = {}
    used: dict[int, int] = {}
    content = [
        {**_named(data, lane, lane.task.process in naming), **_lane_json(connection, data, lane, numbers, reader)}
        for lane in lanes
    ]
    paths = [[used.setdefault(frame, len(used)) for frame in stacks[stack]] for stack in numbers]
    return {
        "duration_us": (data.end_ns - data.begin_ns) // 1000,
        "timeline": data.timeline,
        "lanes": content,
        "holders": holders_json(connection, reader, data, data.looks),
        "stacks": paths,
        "frames": [
            [frame.function, frame.file, frame.line, frame.first_line, kind_of(frame.file)]
            for frame in (frames[number] for number in used)
        ],
    }


def _lane_json(
    connection: sqlite3.Connection, data: TraceData, lane: Lane, numbers: dict[int, int], reader: Reader
) -> dict[str, Any]:
    by, thread = lane.awaited_by, lane.task.thread.split(ID_SEPARATOR)[0]
    begin = data.begin_ns
    waiting = reader.frames(connection, [by.frame])[by.frame] if by else None
    service, process = _process(connection, lane.task.process)
    return {
        "thread": thread,
        "service": service,
        "process": process,
        "depth": lane.depth,
        "awaited_by": {
            "lane": by.lane,
            "start_us": (by.begin_ns - begin) // 1000,
            "end_us": (by.end_ns - begin) // 1000,
            "function": waiting.function,
            "file": waiting.file,
            "line": waiting.line,
        }
        if by and waiting
        else None,
        "pieces": {
            "start_us": [(piece.begin_ns - begin) // 1000 for piece in lane.pieces],
            "end_us": [(piece.end_ns - begin) // 1000 for piece in lane.pieces],
            "state": [piece.state for piece in lane.pieces],
            "span": [data.index_of.get(piece.span_id or b"", -1) for piece in lane.pieces],
            "stack": [_number(piece, numbers) for piece in lane.pieces],
        },
    }


def _named(data: TraceData, lane: Lane, tasks_have_names: bool) -> dict[str, str]:
    """What a lane is called, and what kind of thing that is."""
    if lane.task.name:
        return {"name": lane.task.name, "kind": "task"}
    span = data.index_of.get(lane.task.span_id)
    if span is not None and (lane.is_unseen or not tasks_have_names):
        return {"name": data.spans[span].row.name, "kind": "parent" if lane.is_unseen else "span"}
    return {"name": lane.task.thread.split(ID_SEPARATOR)[0] or "thread", "kind": "thread"}


def _number(piece: Piece, numbers: dict[int, int]) -> int:
    return -1 if piece.state == CHILDREN else numbers.setdefault(piece.stack, len(numbers))


def _process(connection: sqlite3.Connection, resource: int) -> tuple[str, str]:
    row = connection.execute(
        "SELECT service, COALESCE(json_extract(content, '$.\"process.pid\"'), '') FROM resource WHERE id = ?",
        (resource,),
    ).fetchone()
    return (row[0], str(row[1])) if row else ("", "")


def span_holders_json(
    connection: sqlite3.Connection, reader: Reader, data: TraceData, span_id: bytes | None
) -> dict[str, Any]:
    """Who held the loop while tasks of a span and of spans below it were ready; of the trace without a span."""
    spans, begin, end = scope_of(data, Choice(trace=data.trace_id, span=span_id, scope="children"))
    looks = [
        part for look in data.looks if (spans is None or look.span_id in spans) and (part := look.within(begin, end))
    ]
    return holders_json(connection, reader, data, looks)


def holders_json(
    connection: sqlite3.Connection, reader: Reader, data: TraceData, looks: Sequence[Look]
) -> dict[str, Any]:
    """Who held the loop at the times at which some looks saw something ready."""
    ready = ready_times(looks)
    held = holders_of(ready, _running_looks(connection, ready)) if ready else Held()
    return _held_json(connection, reader, data, held)


def _running_looks(connection: sqlite3.Connection, ready: dict[tuple[int, str], list[tuple[int, int]]]) -> list[Look]:
    found: list[Look] = []
    for process in {process for process, _ in ready}:
        times = [time for (of, _), spans in ready.items() if of == process for span in spans for time in span]
        begin, end = min(times), max(times)
        rows = connection.execute(
            f"SELECT {SAMPLE_COLUMNS} FROM sample WHERE resource = ? AND last_ns BETWEEN ? AND ? AND first_ns <= ? "
            "AND state IN (?, ?) LIMIT ?",
            (process, begin, end + MAX_EXPORT_NS, end + LOOK_NS, RUNNING, BLOCKED, MAX_NEIGHBOURS),
        )
        looks = looks_of(map(sample_of, rows))
        found += [part for look in looks if (part := look.within(begin, end))]
    return found


def _held_json(connection: sqlite3.Connection, reader: Reader, data: TraceData, held: Held) -> dict[str, Any]:
    shown = [holder for holder in held.holders if holder.total_ns >= LEAST_NS][:MAX_HOLDERS]
    stacks = reader.stacks(connection, {holder.stack for holder in shown})
    frames = reader.frames(connection, {frame for stack in stacks.values() for frame in stack})
    pieces = sorted((begin, end, index) for index, holder in enumerate(shown) for begin, end in holder.pieces)
    holders = []
    for holder in shown:
        path = [frames[number] for number in stacks[holder.stack]]
        caller, task = caller_in(path), holder.look.task
        trace_id, operation, span_name = _whose(connection, holder.look)
        holders.append(
            {
                "us": holder.total_ns // 1000,
                "share": round(holder.total_ns / held.ready_ns, 4),
                "state": holder.state,
                "task": task.name,
                "thread": task.thread.split(ID_SEPARATOR)[0],
                "caller": frame_json(caller) if caller else None,
                "leaf": frame_json(path[-1]) if path else None,
                "trace_id": trace_id.hex() if trace_id else None,
                "span_id": holder.look.span_id.hex() if holder.look.span_id else None,
                "operation": operation,
                "span_name": span_name,
                "same_trace": trace_id == data.trace_id,
            }
        )
    return {
        "ready_us": held.ready_ns // 1000,
        "unexplained_us": held.unexplained_ns // 1000,
        "holders": holders,
        "pieces": {
            "start_us": [(begin - data.begin_ns) // 1000 for begin, _, _ in pieces],
            "end_us": [(end - data.begin_ns) // 1000 for _, end, _ in pieces],
            "holder": [index for _, _, index in pieces],
        },
    }


def _whose(connection: sqlite3.Connection, look: Look) -> tuple[bytes | None, str, str]:
    """The trace of a look, its operation, and the name of the span."""
    if look.span_id is None:
        return None, "", ""
    row = connection.execute(
        "SELECT p.trace_id, COALESCE(t.operation, ''), COALESCE(s.name, '') FROM sample p "
        "LEFT JOIN trace t ON t.trace_id = p.trace_id "
        "LEFT JOIN span s ON s.trace_id = p.trace_id AND s.span_id = p.span_id "
        "WHERE p.resource = ? AND p.last_ns >= ? AND p.span_id = ? LIMIT 1",
        (look.task.process, look.begin_ns, look.span_id),
    ).fetchone()
    return (row[0], row[1], row[2]) if row else (None, "", "")
