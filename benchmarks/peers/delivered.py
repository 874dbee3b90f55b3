"""Judges what a profiler delivered against what the program knows to be true."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.stacks import Seen


@dataclass(frozen=True)
class Truth:
    """What a program says of itself."""

    parents: dict[str, str]  # function of a leaf -> function that must be next below it, of those that are told apart
    tops: dict[str, str]  # function of a leaf -> function that must be above it, so that the stack is whole
    leaf_share: float | None  # of all tasks, where the program does not change it
    spans: dict[str, str]  # span id -> function of the leaf that it belongs to
    tasks: dict[str, str]  # name of a leaf's task -> span id; empty where the tasks change

    @classmethod
    def read(cls, directory: Path) -> "Truth":
        return cls(**json.loads((directory / "truth.json").read_text()))


@dataclass
class Verdict:
    """Weights of the stacks that were delivered."""

    all: float = 0
    leaves: float = 0  # with the function of a leaf
    right_parent: float = 0  # of these, with the leaf's parent next below it, and whole
    right: float = 0  # of these, with the right span too
    right_span: float = 0  # of the leaves, linked to the span of the task or, where that is not known, of the function


def judge(stacks: Iterable[Seen], truth: Truth) -> Verdict:
    """Adds up the weights. Names are compared by their last part: some formats qualify them, some do not."""
    told_apart = truth.parents.keys() | truth.parents.values()
    known: dict[tuple[str, ...], tuple[str | None, bool]] = {}
    verdict = Verdict()
    for seen in stacks:
        if seen.functions not in known:
            known[seen.functions] = _leaf(seen.functions, truth, told_apart)
        leaf, is_right = known[seen.functions]
        verdict.all += seen.weight
        if leaf is not None:
            verdict.leaves += seen.weight
            has_right_span = _has_right_span(seen, leaf, truth)
            verdict.right_parent += seen.weight * is_right
            verdict.right_span += seen.weight * has_right_span
            verdict.right += seen.weight * (is_right and has_right_span)
    return verdict


def _has_right_span(seen: Seen, leaf: str, truth: Truth) -> bool:
    if seen.span_id is None:
        return False
    if seen.task in truth.tasks:
        return truth.tasks[seen.task] == seen.span_id
    return truth.spans.get(seen.span_id) == leaf


def _leaf(functions: tuple[str, ...], truth: Truth, told_apart: set[str]) -> tuple[str | None, bool]:
    """The innermost leaf function of a stack, and whether the stack around it is right."""
    names = [function.rpartition(".")[2] for function in functions]
    places = [place for place, name in enumerate(names) if name in told_apart]
    leaf = next((place for place in reversed(places) if names[place] in truth.parents), None)
    if leaf is None:
        return None, False
    below = [names[place] for place in places if place < leaf]
    has_parent = bool(below) and below[-1] == truth.parents[names[leaf]]
    return names[leaf], has_parent and truth.tops.get(names[leaf], names[leaf]) in names[leaf:]


def per_second(verdict: Verdict, truth: Truth, profile: dict[str, Any]) -> dict[str, float]:
    """Stacks per second: all, those with the right parent, those with the right span, and those with both.

    Our format gives time, not numbers of looks, so those come from our counters: a look at a task is a stack when the
    task is a leaf, and is right as often as the leaves' time is.
    """
    window = profile.get("window")
    if window is None:
        number, base = verdict.all, 1.0
    elif truth.leaf_share is not None:
        looks = window.get("tasks_visited", 0) * truth.leaf_share
        number, base = window.get("threads_seen", 0) + looks, looks / verdict.leaves if verdict.leaves else 0.0
    else:
        number = window.get("samples", 0)
        base = number / verdict.all if verdict.all else 0.0
    seconds = profile["seconds"]
    return {
        "stacks_per_second": number / seconds,
        "right_parent_per_second": verdict.right_parent * base / seconds,
        "right_span_per_second": verdict.right_span * base / seconds,
        "right_per_second": verdict.right * base / seconds,
    }
