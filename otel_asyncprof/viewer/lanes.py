"""What each task did on the trace's time axis, and which task waited for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..formats.stack_sample import Frame
from . import intervals
from .looks import WAITING, Look, Task

SEAM_NS = 2_000_000  # looks that are meant to follow each other do so within this time
CHILDREN = "children"
SIDE_BY_SIDE = 0.25  # of the shorter task's time
END_OF_GROUP = "TaskGroup.__aexit__"  # of asyncio, and of anyio: where a task waits for those of its group


@dataclass(slots=True)
class Piece:
    """A task in one state on one stack under one span."""

    begin_ns: int
    end_ns: int
    state: str
    span_id: bytes | None
    stack: int  # -1 for a task that waits for tasks


@dataclass(frozen=True, slots=True)
class AwaitedBy:
    """The task that waits for another, from the stacks of both."""

    lane: int
    begin_ns: int
    end_ns: int
    frame: int  # of the waiting task, where it waits


@dataclass(slots=True)
class Lane:
    """One task."""

    task: Task
    pieces: list[Piece]
    prefix: tuple[int, ...] = ()  # functions that all its stacks begin with
    depth: int = 0
    awaited_by: AwaitedBy | None = None
    spans: set[bytes] = field(default_factory=set)
    is_unseen: bool = False  # of a span that was never seen itself

    @property
    def begin_ns(self) -> int:
        """When it was first seen."""
        return self.pieces[0].begin_ns

    @property
    def end_ns(self) -> int:
        """When it was last seen."""
        return self.pieces[-1].end_ns


def lanes_of(
    looks: Sequence[Look],
    stacks: Mapping[int, Sequence[int]],
    frames: Mapping[int, Frame],
    parents: Mapping[bytes, bytes | None],
) -> list[Lane]:
    """Waiting tasks before those they wait for. Parents: of the trace's spans."""
    functions: dict[tuple[str, str, int], int] = {}

    def function_of(frame: int) -> int:
        known = frames[frame]
        return functions.setdefault((known.function, known.file, known.first_line), len(functions))

    of_task: dict[Task, list[Look]] = {}
    for look in looks:
        of_task.setdefault(look.task, []).append(look)
    lanes = [_lane(task, own, stacks, function_of) for task, own in of_task.items()]
    lanes.sort(key=lambda lane: (lane.begin_ns, len(lane.prefix), lane.task))
    by_prefix: dict[tuple[int, ...], list[int]] = {}
    for index, lane in enumerate(lanes):
        if lane.task.name:
            by_prefix.setdefault(lane.prefix, []).append(index)
    by_span: dict[bytes, list[int]] = {}
    for index, lane in enumerate(lanes):
        for span in lane.spans if lane.task.name else ():
            by_span.setdefault(span, []).append(index)
    ends = {number for key, number in functions.items() if key[0] == END_OF_GROUP}
    for index, lane in enumerate(lanes):
        lane.awaited_by = _awaiter(index, lanes, by_prefix, stacks, parents)
        if lane.awaited_by is None and not ends.isdisjoint(lane.prefix):
            lane.awaited_by = _of_group(lane, lanes, by_span, ends, stacks, parents)
    _cut_cycles(lanes)
    return _in_order(lanes)


def _lane(
    task: Task, looks: list[Look], stacks: Mapping[int, Sequence[int]], function_of: Callable[[int], int]
) -> Lane:
    pieces: list[Piece] = []
    for look in sorted(looks, key=lambda look: (look.begin_ns, look.end_ns)):
        stack = max(look.stacks, key=lambda item: item[1])[0]
        last = pieces[-1] if pieces else None
        same = last is not None and (last.state, last.span_id, last.stack) == (look.state, look.span_id, stack)
        if last is not None and same and look.begin_ns - last.end_ns <= SEAM_NS:
            last.end_ns = max(last.end_ns, look.end_ns)
        else:
            pieces.append(Piece(look.begin_ns, look.end_ns, look.state, look.span_id, stack))
    prefix: tuple[int, ...] | None = None
    for stack in {piece.stack for piece in pieces}:
        path = tuple(map(function_of, stacks[stack]))
        prefix = path if prefix is None else _common(prefix, path)
    return Lane(task, pieces, prefix or (), spans={piece.span_id for piece in pieces if piece.span_id})


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    n = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        n += 1
    return one[:n]


def _awaiter(
    index: int,
    lanes: Sequence[Lane],
    by_prefix: Mapping[tuple[int, ...], Sequence[int]],
    stacks: Mapping[int, Sequence[int]],
    parents: Mapping[bytes, bytes | None],
) -> AwaitedBy | None:
    """The task on whose frames this one stands: its whole prefix is a proper beginning of this one's."""
    lane = lanes[index]
    if not lane.task.name:
        return None
    above = _ancestors(lane.spans, parents)
    best: tuple[tuple[bool, bool, int, int, int], int] | None = None
    for n in range(1, len(lane.prefix)):
        for number in by_prefix.get(lane.prefix[:n], ()):
            other = lanes[number]
            if other.task.process != lane.task.process:
                continue
            is_later = other.begin_ns > lane.begin_ns + SEAM_NS
            if is_later and not _is_seen_only_afterwards(other, lane, above):
                continue
            shared = 2 * bool(other.spans & above) + bool(other.spans & lane.spans)
            rank = (not is_later, not _go_side_by_side(lane, other), shared, -n if is_later else n, other.begin_ns)
            if best is None or rank > best[0]:
                best = rank, number
    if best is None:
        return None
    number = best[1]
    longest = max(lane.pieces, key=lambda piece: piece.end_ns - piece.begin_ns)
    return AwaitedBy(number, lane.begin_ns, lane.end_ns, stacks[longest.stack][len(lanes[number].prefix) - 1])


def _of_group(
    lane: Lane,
    lanes: Sequence[Lane],
    by_span: Mapping[bytes, Sequence[int]],
    ends: set[int],
    stacks: Mapping[int, Sequence[int]],
    parents: Mapping[bytes, bytes | None],
) -> AwaitedBy | None:
    """The task that waited for this one's group, where that was only seen later, when it had gone on elsewhere."""
    if not lane.task.name:
        return None
    above = _ancestors(lane.spans, parents)
    found: tuple[int, int, int] | None = None
    for number in {number for span in above for number in by_span.get(span, ())}:
        other = lanes[number]
        if other.task.process != lane.task.process or not _is_seen_only_afterwards(other, lane, above):
            continue
        shared = len(_common(other.prefix, lane.prefix))
        if 0 < shared < len(lane.prefix) and lane.prefix[shared] in ends:
            rank = shared, -other.begin_ns, number
            found = rank if found is None else max(found, rank)
    if found is None:
        return None
    longest = max(lane.pieces, key=lambda piece: piece.end_ns - piece.begin_ns)
    return AwaitedBy(found[2], lane.begin_ns, lane.end_ns, stacks[longest.stack][found[0] - 1])


def _is_seen_only_afterwards(other: Lane, lane: Lane, above: set[bytes]) -> bool:
    """Whether the other can have waited for this one since it began: it was seen in spans above alone, and after it."""
    return other.begin_ns >= lane.end_ns - SEAM_NS and bool(other.spans) and other.spans <= above


def _go_side_by_side(lane: Lane, other: Lane) -> bool:
    """Whether the other was seen waiting for something else meanwhile: a sibling, rather than an awaiter."""
    waiting = intervals.union((piece.begin_ns, piece.end_ns) for piece in other.pieces if piece.state == WAITING)
    own = intervals.union((piece.begin_ns, piece.end_ns) for piece in lane.pieces)
    shorter = min(intervals.length(waiting), intervals.length(own))
    return intervals.length(intervals.common(waiting, own)) > SIDE_BY_SIDE * shorter


def _ancestors(spans: set[bytes], parents: Mapping[bytes, bytes | None]) -> set[bytes]:
    found: set[bytes] = set()
    for span in spans:
        parent = parents.get(span)
        while parent is not None and parent not in found:
            found.add(parent)
            parent = parents.get(parent)
    return found


def _cut_cycles(lanes: Sequence[Lane]) -> None:
    for index, lane in enumerate(lanes):
        seen, current = {index}, lane.awaited_by
        while current is not None:
            if current.lane in seen:
                lane.awaited_by = None
                break
            seen.add(current.lane)
            current = lanes[current.lane].awaited_by


def _in_order(lanes: Sequence[Lane]) -> list[Lane]:
    children: dict[int, list[int]] = {}
    for index, lane in enumerate(lanes):
        children.setdefault(lane.awaited_by.lane if lane.awaited_by else -1, []).append(index)
    order: list[int] = []
    waiting = [(index, 0) for index in reversed(children.get(-1, []))]
    while waiting:
        index, depth = waiting.pop()
        lanes[index].depth = depth
        order.append(index)
        waiting += [(child, depth + 1) for child in reversed(children.get(index, []))]
    place = {index: number for number, index in enumerate(order)}
    for index, below in children.items():
        if index >= 0:
            _fill(lanes[index], [lanes[child] for child in below])
    for lane in lanes:
        if (by := lane.awaited_by) is not None:
            lane.awaited_by = AwaitedBy(place[by.lane], by.begin_ns, by.end_ns, by.frame)
    return [lanes[index] for index in order]


def _fill(lane: Lane, below: Sequence[Lane]) -> None:
    """A task that waits for tasks only gives no samples: where it has none but they have, it waits for them."""
    begin = min(lane.begin_ns, *(child.begin_ns for child in below))
    end = max(lane.end_ns, *(child.end_ns for child in below))
    seen = intervals.union((piece.begin_ns, piece.end_ns) for piece in lane.pieces)
    waited = intervals.union((piece.begin_ns, piece.end_ns) for child in below for piece in child.pieces)
    gaps = intervals.without(intervals.clipped(waited, begin, end), seen)
    lane.pieces += [Piece(start, stop, CHILDREN, None, -1) for start, stop in gaps if stop - start > SEAM_NS]
    lane.pieces.sort(key=lambda piece: piece.begin_ns)
