"""Lanes of spans that no look has seen, though several tasks below were: else nothing would hold these together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from . import intervals
from .lanes import CHILDREN, SEAM_NS, Lane, Piece
from .looks import Task

LEAST_TASKS = 2  # below a span, for a lane of its own


def with_unseen_spans(
    lanes: Sequence[Lane], parents: Mapping[bytes, bytes | None], times: Mapping[bytes, intervals.Interval]
) -> list[Lane]:
    """The lanes, those below such a span together and one level deeper. Parents and times: of the trace's spans."""
    blocks = _blocks(lanes)
    seen = {span for lane in lanes for span in lane.spans}
    below: dict[bytes, list[int]] = {}
    above: dict[int, bytes] = {}
    for first in blocks:
        span = _span_above(lanes[first], parents)
        if span is not None and span not in seen and span in times:
            below.setdefault(span, []).append(first)
            above[first] = span
    order: list[tuple[int, Lane]] = []  # the number it had, -1 for a new one
    for first in blocks:
        span = above.get(first)
        together = below.get(span, []) if span is not None else []
        if span is None or len({lanes[number].task for number in together}) < LEAST_TASKS:
            order += [(number, lanes[number]) for number in blocks[first]]
        elif first == together[0]:
            inner = [number for head in together for number in blocks[head]]
            order.append((-1, _lane(lanes[first].task, span, [lanes[number] for number in inner], times[span])))
            order += [(number, replace(lanes[number], depth=lanes[number].depth + 1)) for number in inner]
    place = {number: index for index, (number, _) in enumerate(order)}
    return [
        replace(lane, awaited_by=replace(lane.awaited_by, lane=place[lane.awaited_by.lane]))
        if lane.awaited_by
        else lane
        for _, lane in order
    ]


def _blocks(lanes: Sequence[Lane]) -> dict[int, list[int]]:
    """For each lane that nobody waits for, itself and those below it: they follow it."""
    blocks: dict[int, list[int]] = {}
    first = 0
    for number, lane in enumerate(lanes):
        if lane.depth == 0:
            first = number
        blocks.setdefault(first, []).append(number)
    return blocks


def _span_above(lane: Lane, parents: Mapping[bytes, bytes | None]) -> bytes | None:
    """The parent of the spans of a lane, if it is the same for all that have theirs outside of it."""
    found = {parents.get(span) for span in lane.spans if parents.get(span) not in lane.spans}
    return found.pop() if len(found) == 1 else None


def _lane(task: Task, span: bytes, inner: Sequence[Lane], time: intervals.Interval) -> Lane:
    """While something below it was seen, it waited for that, as far as is known."""
    pieces = (piece for lane in inner for piece in lane.pieces)
    joined = intervals.union((piece.begin_ns, piece.end_ns + SEAM_NS) for piece in pieces)
    known = intervals.clipped([(begin, end - SEAM_NS) for begin, end in joined], *time)
    return Lane(
        Task(task.process, task.thread, "", span),
        [Piece(begin, end, CHILDREN, span, -1) for begin, end in known] or [Piece(*time, CHILDREN, span, -1)],
        spans={span},
        is_unseen=True,
    )
