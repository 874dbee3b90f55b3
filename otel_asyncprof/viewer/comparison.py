"""Two sets of stacks side by side, each per run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from ..formats.stack_sample import Frame
from .flame import MAX_NODES, PRUNE, Functions, Node, Weights, frames_json, tree_of
from .function_table import function_rows

MAX_FUNCTIONS = 500
MAX_ATTRIBUTES = 20
LEAST_LIFT = 0.2  # by which an attribute has to be more frequent on one side to be named


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two: its stacks, and how many runs they are of."""

    weights: Weights
    runs: int


def is_noise(a: float, n_a: int, b: float, n_b: int) -> bool:
    """Whether two times differ by less than twice what chance makes of so many samples."""
    return abs(a - b) <= 2 * sqrt(a * a / max(n_a, 1) + b * b / max(n_b, 1))


def compared(a: Half, b: Half, frames: Mapping[int, Frame]) -> dict[str, Any]:
    """One tree and one table of both, in microseconds per run."""
    functions = Functions(frames)
    trees = tree_of(a.weights, functions), tree_of(b.weights, functions)
    return {
        "nodes": _columns(trees[0], trees[1], max(a.runs, 1), max(b.runs, 1)),
        "functions": _function_changes(a, b, frames, functions),
        "frames": frames_json(functions.frames),
    }


def _columns(a: Node, b: Node, runs_a: int, runs_b: int) -> dict[str, list[int]]:
    parents: list[int] = []
    frames: list[int] = []
    lines: list[int] = []
    times_a: list[int] = []
    times_b: list[int] = []
    noise: list[int] = []
    least = PRUNE * max(a.total / runs_a, b.total / runs_b)
    nothing = Node(-1)
    waiting = [(a, b, -1)]
    while waiting and len(parents) < MAX_NODES:
        one, other, parent = waiting.pop()
        here = len(parents)
        mean_a, mean_b = one.total / runs_a, other.total / runs_b
        parents.append(parent)
        frames.append(one.function if one is not nothing else other.function)
        lines.append((one if mean_a >= mean_b else other).line)
        times_a.append(round(mean_a / 1000))
        times_b.append(round(mean_b / 1000))
        noise.append(int(is_noise(mean_a, one.n, mean_b, other.n)))
        pairs = [
            (one.children.get(function, nothing), other.children.get(function, nothing))
            for function in one.children.keys() | other.children.keys()
        ]
        kept = [pair for pair in pairs if max(pair[0].total / runs_a, pair[1].total / runs_b) >= least]
        kept.sort(key=lambda pair: max(pair[0].total / runs_a, pair[1].total / runs_b))
        waiting += [(left, right, here) for left, right in kept]
    return {"parent": parents, "frame": frames, "line": lines, "a_us": times_a, "b_us": times_b, "noise": noise}


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
