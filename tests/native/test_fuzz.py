"""Every reader on recorded memory that is changed at random, with seeds that are always the same, under sanitizers.

A finding names target, seed and run: the program `fuzz` repeats it. Longer runs: fuzz TAPE TARGET SEED RUNS.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from native.fuzz.mutants import MUTANTS, Mutant, mutants_for
from native.tape_builds import (
    EXT,
    FUZZ,
    READERS,
    SANITIZED,
    STRICT,
    TAPE_SOURCES,
    VERSION,
    build,
    compiled,
    gcc,
    unpacked,
)

SOURCES = [*READERS, *TAPE_SOURCES, *sorted(FUZZ.glob("*.c"))]
# Runs of each target: a second or less.
RUNS = {
    "threads": 3000,
    "stacks": 800,
    "coroutines": 600,
    "awaiters": 2500,
    "awaited": 2500,
    "task sets": 5000,
    "tasks": 1500,
    "spans": 1000,
    "tick": 500,
    "strings": 2000,
    "numbers": 2000,
    "containers": 1500,
    "attributes": 2000,
    "code": 2000,
    "offsets": 1500,
    "lines": 3000,
    "stitch": 400,
    "tables": 150,
    "thread cycle": 1,
    "eager set": 1,
    "trie cycle": 1,
    "gather cycle": 1,
    "shorter stack": 1,
    "restless thread": 1,
}
TAPE_OF = {
    **dict.fromkeys(("threads", "stacks", "shorter stack", "restless thread"), "threads"),
    **dict.fromkeys(("spans", "numbers", "trie cycle"), "spans"),
}
SEED = "1"
LIMIT_SECONDS = 300


@pytest.fixture(scope="session")
def folder(shared_folder: Path) -> Path:
    """Where objects are."""
    return shared_folder / "sanitized"


@pytest.fixture(scope="session")
def fuzz(folder: Path) -> Path:
    """The program with all targets."""
    return build("fuzz", SOURCES, SANITIZED, folder)


def run(program: Path, target: str, tape: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a target on a tape of this Python."""
    command = [program, unpacked(f"{VERSION}-{tape}", folder), target, SEED, str(RUNS[target])]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)


def test_every_target_is_run(fuzz: Path) -> None:
    """And there is one for each name here."""
    listed = subprocess.run([fuzz, "", "list"], capture_output=True, text=True, check=True).stdout
    assert listed.splitlines() == list(RUNS)


@pytest.mark.parametrize("target", RUNS)
def test_a_reader_stays_within_its_bounds_whatever_memory_holds(target: str, fuzz: Path, tmp_path: Path) -> None:
    """No crash, no read or write out of bounds, no undefined behaviour, no more reads than its bounds allow."""
    done = run(fuzz, target, TAPE_OF.get(target, "constructs"), tmp_path)
    assert (done.stderr, done.stdout, done.returncode) == ("", "passed\n", 0)


@pytest.mark.parametrize("tape", ["spans", "threads", *(["eager"] if sys.version_info >= (3, 12) else [])])
def test_a_tick_stays_within_its_bounds_on_other_programs(tape: str, fuzz: Path, tmp_path: Path) -> None:
    """Spans, several threads and loops, eager tasks."""
    done = run(fuzz, "tick", tape, tmp_path)
    assert (done.stderr, done.stdout, done.returncode) == ("", "passed\n", 0)


def planted(mutant: Mutant, folder: Path, own: Path) -> Path:
    """The program with one bound less."""
    source = EXT / mutant.source
    text = source.read_text(encoding="utf-8")
    assert text.count(mutant.bound) == 1, f"{mutant.source} has no bound {mutant.bound!r}"
    copy, target, program = own / source.name, own / "planted.o", own / "fuzz"
    copy.write_text(text.replace(mutant.bound, mutant.without), encoding="utf-8")
    gcc(*STRICT, *SANITIZED, "-Wno-error", f"-I{source.parent}", "-c", copy, "-o", target)
    objects = [target if path == source else compiled(path, SANITIZED, folder) for path in SOURCES]
    gcc(*SANITIZED, "-pthread", *objects, "-o", program)
    return program


@pytest.mark.parametrize(
    "mutant", mutants_for(sys.version_info.minor), ids=lambda mutant: f"{mutant.target}-{mutant.without}"
)
@pytest.mark.usefixtures("fuzz")
def test_a_missing_bound_is_found(mutant: Mutant, folder: Path, tmp_path: Path) -> None:
    """A copy of the source without one of its bounds does not pass."""
    program = planted(mutant, folder, tmp_path)
    done = run(program, mutant.target, TAPE_OF.get(mutant.target, "constructs"), tmp_path)
    assert done.returncode != 0
    of_a_check = "_targets.c:" in done.stderr
    assert of_a_check or f"target {mutant.target}, seed {SEED}, run " in done.stderr


def test_a_missing_bound_is_planted_for_every_target() -> None:
    """No target goes without the proof that it can fail."""
    assert {mutant.target for mutant in MUTANTS} == set(RUNS)
