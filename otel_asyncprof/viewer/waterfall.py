"""The order in which a trace's spans are drawn, its critical path, and statements that one span runs repeatedly."""

from collections.abc import Sequence
from dataclasses import dataclass

N_PLUS_ONE_RUNS = 5  # of one statement under one parent, from which on a hint is given


@dataclass(slots=True)
class SpanRow:
    """A span as it is stored."""

    span_id: bytes
    parent_id: bytes | None
    name: str
    service: str
    kind: int
    start_ns: int
    end_ns: int
    is_error: bool
    statement: str | None
    query: int | None
    caller: int | None  # number of a frame
    resource: int

    @property
    def duration_ns(self) -> int:
        """From start to end; a span that ends before it starts has none."""
        return max(self.end_ns - self.start_ns, 0)


@dataclass(slots=True)
class Placed:
    """A span at its place: parents come before their children."""

    row: SpanRow
    parent: int  # index; -1 for a root
    depth: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """A statement that one span runs many times."""

    query: int
    statement: str
    runs: int
    parent_id: bytes


def placed(rows: Sequence[SpanRow]) -> list[Placed]:
    """Depth first, siblings by start. Spans in a cycle of parents stand at the end as roots."""
    known = {row.span_id for row in rows}
    children: dict[bytes | None, list[SpanRow]] = {}
    for row in sorted(rows, key=lambda row: (row.start_ns, -row.end_ns, row.span_id), reverse=True):
        is_root = row.parent_id not in known or row.parent_id == row.span_id
        children.setdefault(None if is_root else row.parent_id, []).append(row)
    order: list[Placed] = []
    seen: set[bytes] = set()
    _add(order, seen, children, [(row, -1, 0) for row in children.get(None, ())])
    for row in sorted(rows, key=lambda row: (row.start_ns, row.span_id)):
        if row.span_id not in seen:
            _add(order, seen, children, [(row, -1, 0)])
    return order


def _add(
    order: list[Placed],
    seen: set[bytes],
    children: dict[bytes | None, list[SpanRow]],
    waiting: list[tuple[SpanRow, int, int]],
) -> None:
    while waiting:
        row, parent, depth = waiting.pop()
        if row.span_id in seen:
            continue
        seen.add(row.span_id)
        order.append(Placed(row, parent, depth))
        here = len(order) - 1
        waiting += [(child, here, depth + 1) for child in children.get(row.span_id, ())]


def critical_path(spans: Sequence[Placed]) -> list[int]:
    """The spans without which the first root would have ended earlier, in order of time.

    From the end backwards: of the children that end before the moment reached, the one that ends last is on the path,
    and its start is the next moment.
    """
    if not spans:
        return []
    children: dict[int, list[int]] = {}
    for index, span in enumerate(spans):
        children.setdefault(span.parent, []).append(index)
    for siblings in children.values():
        siblings.sort(key=lambda index: spans[index].row.end_ns)
    root = max(children[-1], key=lambda index: spans[index].row.duration_ns)
    path, waiting = [], [(root, spans[root].row.end_ns)]
    while waiting:
        index, moment = waiting.pop()
        path.append(index)
        for child in reversed(children.get(index, ())):
            row = spans[child].row
            if row.end_ns <= moment and row.start_ns >= spans[index].row.start_ns:
                waiting.append((child, row.end_ns))
                moment = row.start_ns
    return sorted(path, key=lambda index: (spans[index].row.start_ns, spans[index].depth))


def repeated(rows: Sequence[SpanRow], least: int = N_PLUS_ONE_RUNS) -> list[Repeated]:
    """The statements that a span runs so often, the most runs first."""
    runs: dict[tuple[int, bytes], int] = {}
    statements: dict[int, str] = {}
    for row in rows:
        if row.query is not None and row.parent_id is not None:
            runs[row.query, row.parent_id] = runs.get((row.query, row.parent_id), 0) + 1
            statements[row.query] = row.statement or ""
    found = [Repeated(query, statements[query], n, parent) for (query, parent), n in runs.items() if n >= least]
    return sorted(found, key=lambda item: (-item.runs, item.query, item.parent_id))
