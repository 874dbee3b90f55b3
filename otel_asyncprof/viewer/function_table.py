"""Stacks with their time -> one row for each function: the table that says what the graph shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from ..analysis.places import kind_of
from ..formats.stack_sample import Frame
from .flame import Functions, Weight, Weights, frames_of
from .looks import STATES

MAX_ROWS = 2000


@dataclass(slots=True)
class Row:
    """One function over all stacks; where it calls itself, its time counts once."""

    frame: Frame
    weight: Weight = field(default_factory=Weight)
    self_time: float = 0.0
    lines: dict[int, float] = field(default_factory=dict)
    matches: bool = False

    def json(self) -> dict[str, Any]:
        """As the API sends it."""
        micros = {f"{state}_us": round(value / 1000) for state, value in zip(STATES, self.weight.states, strict=True)}
        return {
            "function": self.frame.function,
            "file": self.frame.file,
            "line": max(self.lines, key=lambda line: self.lines[line], default=0),
            "first_line": self.frame.first_line,
            "kind": kind_of(self.frame.file),
            "total_us": sum(micros.values()),
            "self_us": round(self.self_time / 1000),
            **micros,
            "samples": self.weight.n,
            "margin": margin(self.weight.n),
            "match": self.matches,
        }


def margin(n: int) -> float:
    """By which share a sum over n samples may be off: two standard deviations, at most all of it."""
    return round(min(2 / sqrt(n), 1.0), 3) if n else 1.0


def function_rows(weights: Weights, frames: Mapping[int, Frame], matching: set[int] | None = None) -> list[Row]:
    """The one with the most self time first, then total time."""
    functions = Functions(frames)
    functions.know(frames_of(weights))
    numbers, lines = functions.number, functions.line
    rows: dict[int, Row] = {}
    for stack, weight in weights.items():
        time = weight.total
        seen = set()
        for frame in reversed(stack):  # the innermost call says the line
            function = numbers[frame]
            row = rows.get(function)
            if row is None:
                row = rows[function] = Row(functions.frames[function])
            if matching and frame in matching:
                row.matches = True
            if function in seen:
                continue
            seen.add(function)
            line = lines[frame]
            row.lines[line] = row.lines.get(line, 0.0) + time
            row.weight.n += weight.n
            for index, value in enumerate(weight.states):
                row.weight.states[index] += value
        if stack:
            rows[numbers[stack[-1]]].self_time += time
    return sorted(rows.values(), key=lambda row: (-row.self_time, -row.weight.total, row.frame))
