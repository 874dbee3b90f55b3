"""Stacks with their time -> a tree in columns, as flame graphs draw it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nextafter
from operator import attrgetter

from ..analysis.places import kind_of
from ..formats.stack_sample import Frame
from .looks import STATES

MAX_NODES = 50_000  # that are sent; the lightest are left out
PRUNE = 0.0005

_STATE_INDEX = {state: index for index, state in enumerate(STATES)}


@dataclass(slots=True)
class Weight:
    """The time on a stack by state, in nanoseconds, and how often it was seen."""

    states: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    n: int = 0

    def add(self, state: str, time: float, n: int = 1) -> None:
        """Another time on it."""
        self.states[_STATE_INDEX.get(state, 0)] += time
        self.n += n

    @property
    def total(self) -> float:
        """In all states."""
        return sum(self.states)


Stack = tuple[int, ...]  # numbers of frames, root first
Weights = Mapping[Stack, Weight]


class Node:
    """A place in the tree. There are tens of thousands: nothing is made before it is needed."""

    __slots__ = ("children", "function", "line", "lines", "n", "self_time", "states", "total")

    def __init__(self, function: int, line: int = 0) -> None:
        self.function = function
        self.children: dict[int, Node] = {}
        self.line = line  # the one with the most time
        self.lines: dict[int, float] | None = None  # times, where there are several lines
        self.states: Sequence[float] = _NOTHING
        self.total = 0.0  # of all states, with all below it
        self.self_time = 0.0
        self.n = 0


_NOTHING = (0.0, 0.0, 0.0, 0.0)


class Functions:
    """Numbers for what one node stands for: a function, or a line of it."""

    def __init__(self, frames: Mapping[int, Frame], *, by_line: bool = False) -> None:
        self.frames: list[Frame] = []
        self._numbers: dict[Frame, int] = {}
        self._of: dict[int, tuple[int, int]] = {}
        self._all = frames
        self._by_line = by_line

    def of(self, frames: Iterable[int]) -> Mapping[int, tuple[int, int]]:
        """For each frame the number of what it belongs to, and its line. For these frames, and others before."""
        known, numbers = self._of, self._numbers
        for frame in frames:
            if frame not in known:
                found = self._all[frame]
                key = found if self._by_line else Frame(found.function, found.file, 0, found.first_line)
                number = numbers.get(key)
                if number is None:
                    number = numbers[key] = len(self.frames)
                    self.frames.append(key)
                known[frame] = (number, found.line)
        return known


def tree_of(weights: Weights, functions: Functions, *, inverted: bool = False) -> Node:
    """The root, which stands for all; its children are the stacks' roots, or their leaves when inverted."""
    root = Node(-1)
    of = functions.of({frame for stack in weights for frame in stack})
    for stack, weight in weights.items():
        time = weight.total
        node = root
        for frame in reversed(stack) if inverted else stack:
            function, line = of[frame]
            child = node.children.get(function)
            if child is None:
                child = node.children[function] = Node(function, line)
            if child.line != line or child.lines is not None:
                _add_line(child, line, time)
            child.total += time
            node = child
        root.total += time
        node.self_time += time
        node.n += weight.n
        s0, s1, s2, s3 = node.states
        node.states = (s0 + weight.states[0], s1 + weight.states[1], s2 + weight.states[2], s3 + weight.states[3])
    _add_up(root)
    return root


def _add_line(node: Node, line: int, time: float) -> None:
    if node.lines is None:
        node.lines = {node.line: node.total}
    lines = node.lines
    lines[line] = lines.get(line, 0.0) + time
    if lines[line] > lines[node.line]:
        node.line = line


def _add_up(root: Node) -> None:
    """Gives each node the states of what is below it."""
    order, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        if node.children:
            order.append(node)
            waiting += node.children.values()
    for node in reversed(order):
        s0, s1, s2, s3 = node.states
        n = node.n
        for child in node.children.values():
            c0, c1, c2, c3 = child.states
            s0 += c0
            s1 += c1
            s2 += c2
            s3 += c3
            n += child.n
        node.states = (s0, s1, s2, s3)
        node.n = n


def columns_of(
    root: Node, prune: float = PRUNE, matching: frozenset[int] | set[int] = frozenset()
) -> dict[str, object]:
    """The tree in pre-order, the heaviest sibling first, without nodes below a share of the root."""
    order, parents = _ordered(root, root.total * prune)
    if len(order) > MAX_NODES:
        lightest_kept = sorted((node.total for node in order), reverse=True)[MAX_NODES - 1]
        order, parents = _ordered(root, lightest_kept)
        if len(order) > MAX_NODES:  # many weigh the same
            order, parents = _ordered(root, nextafter(lightest_kept, inf))
    states = [[int(node.states[index] / 1000 + 0.5) for node in order] for index in range(len(STATES))]
    columns = {
        "parent": parents,
        "frame": [node.function for node in order],
        "line": [node.line for node in order],
        "total_us": [sum(parts) for parts in zip(*states, strict=True)],
        "self_us": [int(node.self_time / 1000 + 0.5) for node in order],
        **{f"{state}_us": column for state, column in zip(STATES, states, strict=True)},
        "samples": [node.n for node in order],
        "match": [1 if node.function in matching else 0 for node in order] if matching else [0] * len(order),
    }
    return {"nodes": columns, "pruned": _pruned(order, parents)}


def _ordered(root: Node, least: float) -> tuple[list[Node], list[int]]:
    """Nodes of this weight and more in pre-order, and the positions of their parents."""
    order: list[Node] = []
    parents: list[int] = []
    stack = [(root, -1)]
    while stack:
        node, parent = stack.pop()
        here = len(order)
        order.append(node)
        parents.append(parent)
        if children := node.children:
            kept = [child for child in children.values() if child.total >= least]
            if len(kept) > 1:
                kept.sort(key=_total)
            stack += [(child, here) for child in kept]
    return order, parents


def _pruned(order: list[Node], parents: list[int]) -> int:
    """How many children of these were left out."""
    return sum(len(node.children) for node in order) - (len(parents) - 1)


_total = attrgetter("total")


def frames_json(frames: Iterable[Frame]) -> list[list[object]]:
    """What nodes refer to."""
    return [[frame.function, frame.file, frame.first_line, kind_of(frame.file)] for frame in frames]


def total_of(weights: Weights) -> Weight:
    """All stacks together."""
    total = Weight()
    for weight in weights.values():
        for index, value in enumerate(weight.states):
            total.states[index] += value
        total.n += weight.n
    return total
