"""Stacks with their sums -> the nodes of their tree in pre-order, written into columns as they are found.

There are tens of thousands of nodes: none is an object, and what lies below a node with one stack is copied as a whole.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, nextafter
from typing import Any, NamedTuple

ROOT = -1  # in place of a function, and of the parent of the root

Stack = tuple[int, ...]  # numbers of frames, root first
Sums = Sequence[float]  # four of them, whatever they are of
Entry = tuple[Stack, float, Sums, int]  # a stack, its heaviness, its sums, and how often it was seen
Numbers = Callable[[int], int]  # of a frame


class Place(NamedTuple):
    """A node, and the only child of it, and of that, and so on, where all below it is one stack."""

    parent: int  # position, ROOT for the root
    function: int
    line: int  # the one with the most time
    sums: Sums
    n: int
    heaviness: float
    own: float  # of stacks that end here
    rest: Stack  # the frames below; the last of them has the own time then


@dataclass
class Columns:
    """What is told of each node."""

    parent: list[int] = field(default_factory=list)
    function: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    told: list[list[int]] = field(default_factory=list)
    pruned: int = 0  # children that were left out


@dataclass
class Layout:
    """How trees are made of stacks: heavier siblings come first, what is too light is left out with all below it."""

    function_of: Numbers
    line_of: Numbers
    heaviness: Callable[[Sums], float]  # no heavier for a part than for the whole
    told: Callable[[Sums, int], tuple[int, ...]]  # what columns hold of a node's sums and of how often it was seen
    least: float = 0.0
    pruned: int = 0

    def columns(self, entries: list[Entry], most: int) -> Columns:
        """All nodes; when they are too many the heaviest, without those that weigh the same as some left out."""
        found = self._columns(entries, most)
        if found is None:
            self.least = self._least_of(entries, most)
            found = self._columns(entries, most)
            assert found is not None
        return found

    def _columns(self, entries: list[Entry], most: int) -> Columns | None:
        found = Columns()
        self.pruned = 0
        parents, functions, lines, own = found.parent, found.function, found.line, found.own
        for place in self._places(entries):
            here = len(parents)
            parents.append(place.parent)
            functions.append(place.function)
            lines.append(place.line)
            values = self.told(place.sums, place.n)
            if not found.told:
                found.told = [[] for _ in values]
            for column, value in zip(found.told, values, strict=True):
                column.append(value)
            if rest := place.rest:
                length = len(rest)
                parents += range(here, here + length)
                functions += map(self.function_of, rest)
                lines += map(self.line_of, rest)
                own += [0.0] * length
                for column, value in zip(found.told, values, strict=True):
                    column += [value] * length
            own.append(place.own)
            if len(parents) > most:
                return None
        found.pruned = self.pruned
        return found

    def _least_of(self, entries: list[Entry], most: int) -> float:
        """The heaviness that no more nodes than these have. Raises it as it goes, so that little is kept."""
        kept = array("d")
        for place in self._places(entries):
            kept.extend([place.heaviness] * (1 + len(place.rest)))
            if len(kept) > 2 * most:
                kept = self._heaviest(kept, most)
        self._heaviest(kept, most)
        return self.least

    def _heaviest(self, weights: Iterable[float], most: int) -> "array[float]":
        heaviest = sorted(weights, reverse=True)
        if len(heaviest) <= most:
            return array("d", heaviest)
        last = heaviest[most - 1]
        self.least = nextafter(last, inf) if heaviest[most] == last else last
        return array("d", [weight for weight in heaviest if weight >= self.least])

    def _places(self, entries: list[Entry]) -> Iterator[Place]:
        """The nodes in pre-order."""
        position = 0
        sums, n = _added_up(entries)
        waiting = [(ROOT, ROOT, 0, entries, 0, sums, n, self.heaviness(sums))]
        while waiting:
            parent, function, line, group, depth, sums, n, heaviness = waiting.pop()
            if heaviness < self.least and parent >= 0:  # it has become too light since
                self.pruned += 1
                continue
            here = position
            if len(group) == 1:
                stack, own, _, _ = group[0]
                rest = stack[depth:] if heaviness >= self.least else ()
                position += 1 + len(rest)
                yield Place(parent, function, line, sums, n, heaviness, own, rest)
                continue
            position += 1
            own, children = self._children(here, group, depth)
            yield Place(parent, function, line, sums, n, heaviness, own, ())
            waiting += children

    def _children(self, parent: int, group: list[Entry], depth: int) -> tuple[float, list[Any]]:
        """Divides the stacks of a node by the function that comes next: the lightest first, without those too light."""
        function_of, line_of = self.function_of, self.line_of
        own = 0.0
        groups: dict[int, list[Entry]] = {}
        for entry in group:
            stack = entry[0]
            if depth == len(stack):
                own += entry[1]
                continue
            function = function_of(stack[depth])
            known = groups.get(function)
            if known is None:
                groups[function] = [entry]
            else:
                known.append(entry)
        children = []
        for function, below in groups.items():
            sums, n = _added_up(below)
            heaviness = self.heaviness(sums)
            if heaviness < self.least:
                self.pruned += 1
                continue
            line = _heaviest_line(below, depth, line_of)
            children.append((parent, function, line, below, depth + 1, sums, n, heaviness))
        children.sort(key=_heaviness)
        return own, children


def _heaviness(child: tuple[Any, ...]) -> float:
    heaviness: float = child[-1]
    return heaviness


def _heaviest_line(entries: Sequence[Entry], depth: int, line_of: Numbers) -> int:
    first = line_of(entries[0][0][depth])
    if len(entries) == 1:
        return first
    lines: dict[int, float] = {}
    for stack, time, _, _ in entries:
        line = line_of(stack[depth])
        lines[line] = lines.get(line, 0.0) + time
    return max(lines, key=lines.__getitem__) if len(lines) > 1 else first


def _added_up(entries: Sequence[Entry]) -> tuple[Sums, int]:
    if len(entries) == 1:
        return entries[0][2], entries[0][3]
    s0 = s1 = s2 = s3 = 0.0
    n = 0
    for _, _, (w0, w1, w2, w3), seen in entries:
        s0 += w0
        s1 += w1
        s2 += w2
        s3 += w3
        n += seen
    return (s0, s1, s2, s3), n
