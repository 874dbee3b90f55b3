"""Two sets of stacks side by side, each per run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from ..formats.stack_sample import Frame
from .flame import MAX_NODES, PRUNE, Functions, Weights, frames_json, frames_of
from .function_table import function_rows
from .tree_layout import Entry, Layout, Stack, Sums

MAX_FUNCTIONS = 500
MAX_ATTRIBUTES = 20
LEAST_LIFT = 0.2  # by which an attribute has to be more frequent on one side to be named


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two: its stacks, and how many runs they are of."""

    weights: Weights
    runs: int


def is_noise(a: float, n_a: float, b: float, n_b: float) -> bool:
    """Whether two times differ by less than twice what chance makes of so many samples."""
    return abs(a - b) <= 2 * sqrt(a * a / max(n_a, 1) + b * b / max(n_b, 1))


def compared(a: Half, b: Half, frames: Mapping[int, Frame]) -> dict[str, Any]:
    """One tree and one table of both, in microseconds per run."""
    functions = Functions(frames)
    return {
        "nodes": _columns(a, b, functions),
        "functions": _function_changes(a, b, frames, functions),
        "frames": frames_json(functions.frames),
    }


def _columns(a: Half, b: Half, functions: Functions) -> dict[str, list[int]]:
    """Of each node the times per run of both sides. What is light on both is left out."""
    sums: dict[Stack, list[float]] = {}  # time and number of samples on each side
    for side, half in enumerate((a, b)):
        for stack, weight in half.weights.items():
            of_stack = sums.setdefault(stack, [0.0, 0.0, 0.0, 0.0])
            of_stack[side] += weight.total / max(half.runs, 1)
            of_stack[side + 2] += weight.n
    functions.know(frames_of(sums))
    entries: list[Entry] = [(stack, _heavier(of_stack), of_stack, 0) for stack, of_stack in sums.items()]
    least = PRUNE * max(sum(of_stack[side] for of_stack in sums.values()) for side in (0, 1)) if sums else 0.0
    layout = Layout(functions.number.__getitem__, functions.line.__getitem__, _heavier, _told, least)
    found = layout.columns(entries, MAX_NODES)
    times_a, times_b, noise = found.told
    return {
        "parent": found.parent,
        "frame": found.function,
        "line": found.line,
        "a_us": times_a,
        "b_us": times_b,
        "noise": noise,
    }


def _heavier(sums: Sums) -> float:
    return max(sums[0], sums[1])


def _told(sums: Sums, _: int) -> tuple[int, ...]:
    a, b, n_a, n_b = sums
    return round(a / 1000), round(b / 1000), int(is_noise(a, n_a, b, n_b))


def _function_changes(a: Half, b: Half, frames: Mapping[int, Frame], functions: Functions) -> list[dict[str, Any]]:
    numbers = {frame: number for number, frame in enumerate(functions.frames)}
    rows_a = {row.frame: row for row in function_rows(a.weights, frames)}
    rows_b = {row.frame: row for row in function_rows(b.weights, frames)}
    runs_a, runs_b = max(a.runs, 1), max(b.runs, 1)
    changes = []
    for frame in rows_a.keys() | rows_b.keys():
        one, other = rows_a.get(frame), rows_b.get(frame)
        mean_a = one.weight.total / runs_a if one else 0.0
        mean_b = other.weight.total / runs_b if other else 0.0
        lines = (one if one and mean_a >= mean_b else other or one).lines  # type: ignore[union-attr]
        changes.append(
            {
                "frame": numbers[frame],
                "line": max(lines, key=lambda line: lines[line], default=0),
                "a_us": round(mean_a / 1000),
                "b_us": round(mean_b / 1000),
                "a_self_us": round(one.self_time / runs_a / 1000) if one else 0,
                "b_self_us": round(other.self_time / runs_b / 1000) if other else 0,
                "noise": is_noise(mean_a, one.weight.n if one else 0, mean_b, other.weight.n if other else 0),
            }
        )
    changes.sort(key=lambda change: (-abs(change["b_us"] - change["a_us"]), change["frame"]))
    return changes[:MAX_FUNCTIONS]


def over_represented(
    a: Sequence[Iterable[tuple[str, str]]], b: Sequence[Iterable[tuple[str, str]]]
) -> list[dict[str, Any]]:
    """The attributes that runs of b have more often than runs of a, the largest difference first.

    A value that a single one of several runs has, such as an id, says nothing of the others.
    """
    shares = [_shares(side) for side in (a, b)]
    shared_by_several = 1.5 / len(b) if len(b) > 1 else 0.0
    found = [
        {"key": key, "value": value, "a_share": round(shares[0].get((key, value), 0.0), 4), "b_share": round(share, 4)}
        for (key, value), share in shares[1].items()
        if share >= shared_by_several and share - shares[0].get((key, value), 0.0) >= LEAST_LIFT
    ]
    found.sort(key=lambda item: (item["a_share"] - item["b_share"], item["key"], item["value"]))  # type: ignore[operator]
    return found[:MAX_ATTRIBUTES]


def _shares(runs: Sequence[Iterable[tuple[str, str]]]) -> dict[tuple[str, str], float]:
    counts: dict[tuple[str, str], int] = {}
    for run in runs:
        for pair in set(run):
            counts[pair] = counts.get(pair, 0) + 1
    return {pair: n / len(runs) for pair, n in counts.items()}
