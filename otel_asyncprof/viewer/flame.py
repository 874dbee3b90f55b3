"""Stacks with their time -> a tree in columns, as flame graphs draw it."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from ..analysis.places import kind_of
from ..formats.stack_sample import Frame
from .looks import STATES
from .tree_layout import Entry, Layout, Stack, Sums

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


Weights = Mapping[Stack, Weight]


class Functions:
    """Numbers for what one node stands for: a function, or a line of it."""

    def __init__(self, frames: Mapping[int, Frame], *, by_line: bool = False) -> None:
        self.frames: list[Frame] = []
        self.number: dict[int, int] = {}  # of what a frame belongs to
        self.line: dict[int, int] = {}  # of a frame
        self._numbers: dict[Frame, int] = {}
        self._all = frames
        self._by_line = by_line

    def know(self, frames: Iterable[int]) -> None:
        """Numbers what these frames belong to."""
        for frame in frames:
            if frame in self.number:
                continue
            found = self._all[frame]
            key = found if self._by_line else Frame(found.function, found.file, 0, found.first_line)
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self.frames)
                self.frames.append(key)
            self.number[frame], self.line[frame] = number, found.line


def frames_of(weights: Iterable[Stack]) -> set[int]:
    """All frames of some stacks."""
    return set().union(*weights)


def columns_of(
    weights: Weights,
    functions: Functions,
    *,
    inverted: bool = False,
    prune: float = PRUNE,
    matching: Set[int] = frozenset(),
) -> dict[str, Any]:
    """The tree in pre-order, the heaviest sibling first, without what is below nodes lighter than a share of the root.

    The root stands for all; its children are the stacks' roots, or their leaves when inverted.
    """
    functions.know(frames_of(weights))
    entries: list[Entry] = [
        (stack[::-1] if inverted else stack, weight.total, weight.states, weight.n) for stack, weight in weights.items()
    ]
    least = sum(entry[1] for entry in entries) * prune
    layout = Layout(functions.number.__getitem__, functions.line.__getitem__, sum, _told, least)
    found = layout.columns(entries, MAX_NODES)
    total, *states, samples = found.told
    columns = {
        "parent": found.parent,
        "frame": found.function,
        "line": found.line,
        "total_us": total,
        "self_us": [int(own / 1000 + 0.5) if own else 0 for own in found.own],
        **{f"{state}_us": column for state, column in zip(STATES, states, strict=True)},
        "samples": samples,
        "match": [int(function in matching) for function in found.function] if matching else [0] * len(total),
    }
    return {"nodes": columns, "pruned": found.pruned}


def _told(states: Sums, n: int) -> tuple[int, ...]:
    micros = [int(state / 1000 + 0.5) for state in states]
    return (sum(micros), *micros, n)


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
