"""Stacks with their time -> a tree in columns, as flame graphs draw it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nextafter
from operator import attrgetter
from typing import Any

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

    __slots__ = ("children", "function", "line", "n", "self_time", "states", "total")

    def __init__(self, function: int, line: int = 0) -> None:
        self.function = function
        self.children: dict[int, Node] = {}
        self.line = line  # the one with the most time
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
        self._all = frames
        self._by_line = by_line
        self.known: dict[int, tuple[int, int]] = {}  # for each frame what `of_frame` has said

    def of_frame(self, frame: int) -> tuple[int, int]:
        """The number of what a frame belongs to, and its line."""
        found = self._all[frame]
        key = found if self._by_line else Frame(found.function, found.file, 0, found.first_line)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.frames)
            self.frames.append(key)
        self.known[frame] = known = number, found.line
        return known

    def of(self, frames: Iterable[int]) -> Mapping[int, tuple[int, int]]:
        """For each frame the number of what it belongs to, and its line. For these frames, and others before."""
        for frame in frames:
            if frame not in self.known:
                self.of_frame(frame)
        return self.known


_Entry = tuple[Stack, float, Weight]  # a stack with its time, and what that is made of


def tree_of(weights: Weights, functions: Functions, *, inverted: bool = False, prune: float = 0.0) -> Node:
    """The root, which stands for all; its children are the stacks' roots, or their leaves when inverted.

    What is below nodes lighter than a share of the root is left out: nobody will see it.
    """
    root = Node(-1)
    entries: list[_Entry] = [
        (stack[::-1] if inverted else stack, weight.total, weight) for stack, weight in weights.items()
    ]
    _add_up(root, entries)
    least = root.total * prune
    waiting = [(root, entries, 0)]
    while waiting:
        node, entries, depth = waiting.pop()
        if len(entries) == 1:
            _add_chain(node, entries[0], depth, functions)
            continue
        for child, below in _children(node, entries, depth, functions):
            if child.total >= least:
                waiting.append((child, below, depth + 1))
    return root


def _add_up(node: Node, entries: Sequence[_Entry]) -> None:
    """Gives a node the time of some stacks."""
    if len(entries) == 1:
        _, node.total, weight = entries[0]
        node.states, node.n = weight.states, weight.n
        return
    s0 = s1 = s2 = s3 = total = 0.0
    n = 0
    for _, time, weight in entries:
        w0, w1, w2, w3 = weight.states
        s0 += w0
        s1 += w1
        s2 += w2
        s3 += w3
        total += time
        n += weight.n
    node.states, node.total, node.n = (s0, s1, s2, s3), total, n


def _children(
    node: Node, entries: Sequence[_Entry], depth: int, functions: Functions
) -> Iterable[tuple[Node, list[_Entry]]]:
    """Divides the stacks of a node by the function that comes next."""
    known = functions.known
    groups: dict[int, list[_Entry]] = {}
    lines: dict[int, dict[int, float]] = {}
    for entry in entries:
        stack, time, _ = entry
        if depth == len(stack):
            node.self_time += time
            continue
        function, line = known.get(stack[depth]) or functions.of_frame(stack[depth])
        group = groups.get(function)
        if group is None:
            groups[function] = [entry]
            lines[function] = {line: time}
        else:
            group.append(entry)
            of_function = lines[function]
            of_function[line] = of_function.get(line, 0.0) + time
    for function, group in groups.items():
        of_function = lines[function]
        line = max(of_function, key=of_function.__getitem__) if len(of_function) > 1 else next(iter(of_function))
        child = node.children[function] = Node(function, line)
        _add_up(child, group)
        yield child, group


def _add_chain(node: Node, entry: _Entry, depth: int, functions: Functions) -> None:
    """What is left of the only stack of a node."""
    stack, time, _ = entry
    known = functions.known
    for frame in stack[depth:]:
        function, line = known.get(frame) or functions.of_frame(frame)
        child = node.children[function] = Node(function, line)
        child.total, child.states, child.n = time, node.states, node.n
        node = child
    node.self_time += time


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
        children = node.children
        if len(children) == 1:
            (child,) = children.values()
            if child.total >= least:
                stack.append((child, here))
        elif children:
            kept = [child for child in children.values() if child.total >= least]
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


def total_of(weights: Mapping[Any, Weight]) -> Weight:
    """All stacks together."""
    total = Weight()
    for weight in weights.values():
        for index, value in enumerate(weight.states):
            total.states[index] += value
        total.n += weight.n
    return total
