"""What the profiler holds stays bounded and small, whatever the application makes; at rest it allocates nothing."""

from __future__ import annotations

import itertools
import re
import statistics
from typing import Any

import pytest
from stress.interposed import run_program

MEBIBYTE = 1 << 20
MOST_HELD = 32 * MEBIBYTE
NOISE = 4 * MEBIBYTE  # tables double; how many samples an interval has depends on the machine
A_FEW_STACKS = MEBIBYTE // 4
A_FEW_BYTES = 200  # for each batch
EXACT = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"}  # no freed block counts as given out
MOST_BLOCKS = 500  # of Python objects: those of the profiler itself, and of what was noted
SOME = {"tasks": 10_000, "functions": 2_000, "codes": 20_000, "threads": 500, "spans": 2_000, "stacks": 10_000}
NEVER_ENDED = {"spans": 0.1}  # of the spans: one cell and its name for each, 65,536 of them at most


def growth(notes: list[list[int]], column: int) -> int:
    """How much more there was at the end than after a quarter of the names."""
    return notes[-1][column] - notes[len(notes) // 4][column]


@pytest.mark.parametrize("kind", SOME)
def test_a19_unique_names_do_not_pile_up(kind: str) -> None:
    """What the extension holds is flat and goes away whole; nothing else that has been taken is kept."""
    report = run_program("churn.py", kind, SOME[kind], 0.1, **EXACT)
    held = [note[0] for note in report["notes"]]
    half = len(held) // 2
    assert max(held) < MOST_HELD
    assert max(held[half:]) < max(held[:half]) + NOISE
    assert report["anew"] < report["fresh"] + A_FEW_STACKS
    kept = 2 * NEVER_ENDED.get(kind, 0) * SOME[kind]
    assert growth(report["notes"], 1) - growth(report["alone"], 1) < kept + MOST_BLOCKS
    elsewhere = [note[3] for note in report["notes"]][half:]
    assert statistics.median(after - before for before, after in itertools.pairwise(elsewhere)) < A_FEW_BYTES
    assert report["intervals"] > 1
    assert report["samples"] > 0


@pytest.mark.parametrize("kind", ["tasks", "stacks"])
def test_an_interval_without_an_end_is_bounded(kind: str) -> None:
    """No export comes: the tables keep their bounds, and what is over is gone with the next start."""
    report = run_program("churn.py", kind, SOME[kind], 3600)
    assert max(note[0] for note in report["notes"]) < MOST_HELD
    assert report["anew"] < report["fresh"] + A_FEW_STACKS


@pytest.fixture(scope="module")
def steady() -> dict[str, Any]:
    """A program whose stacks stay the same."""
    report: dict[str, Any] = run_program("steady.py")
    return report


def test_in_the_steady_state_the_sampler_allocates_nothing(steady: dict[str, Any]) -> None:
    """Not once in 500 ticks and three exports: neither malloc nor free nor mmap."""
    assert steady["stretches"][-1] == [0, 0, 0], steady["stretches"]


def test_the_sampler_opens_no_file_but_the_state_of_a_thread(steady: dict[str, Any]) -> None:
    """And that only of threads that have run much without the interpreter's lock: not once in every tick."""
    assert [path for path in steady["opened"] if not re.fullmatch(r"/proc/self/task/\d+/stat", path)] == []
    assert steady["opens"] < steady["ticks"]


def test_short_memory_costs_samples_and_nothing_else() -> None:
    """Each allocation of the extension fails once, or all from it on: a refusal with the reason, or <overflow>."""
    report = run_program("short_memory.py")
    assert report["failures"] > 100
    seen = set()
    for ends in (report["once"], report["from then on"]):
        refused = [end for end in ends if end == "RuntimeError: memory is short"]
        assert ends[: len(refused)] == refused
        assert len(refused) > 20
        seen |= set(ends[len(refused) :])
    assert seen == {"whole", "overflow"}
