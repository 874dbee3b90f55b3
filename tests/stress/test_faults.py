"""Reads that fail: each read of a look in turn, and those of memory that comes and goes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stress.fault_build import TESTS, environment
from stress.fault_results import Seen, decode, untrue

LIMIT_SECONDS = 300
NESTED = () if sys.version_info >= (3, 14) else ("inner",)  # in a loop within a loop, which asyncio now refuses
Found = dict[str, Any]


def run(kind: str, program: str, folder: Path, *arguments: object) -> Found:
    """What a program of this folder has written; it must not say anything, and end with status 0."""
    result = folder / "result.json"
    command = [sys.executable, str(TESTS / "stress" / program), str(result), *map(str, arguments)]
    ended = subprocess.run(command, env=environment(kind), capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert (ended.returncode, ended.stderr) == (0, "")
    found: Found = json.loads(result.read_text(encoding="utf-8"))
    return found | {"exact": decode(found["exact"])}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Looks of which each read has failed once."""
    return run("plain", "fault_program.py", tmp_path_factory.mktemp("sweep"), "guarded", 1)


def names_of(sample: Seen) -> tuple[str, ...]:
    """The functions, without what started the loop."""
    names = [frame.split(" ")[0] for frame in sample.frames]
    return tuple(names[names.index("run_greenlets") + 1 :] if "run_greenlets" in names else names)


def assert_harmless(found: Found) -> None:
    """Nothing untrue has been seen, what was lost is counted, the looks afterwards are exact, and nothing is left."""
    assert untrue(found["inexact"], found["exact"])[:5] == []
    assert {what for _, what, _ in found["inexact"]} == {"counted"}
    assert found["held"] == 0


def test_the_program_at_rest_is_seen_as_python_describes_it(swept: Found) -> None:
    """What all other looks are compared with: each task's frames end in its own await chain."""
    chains = {
        name: tuple(f"{function} {file}:{line}({first})" for function, file, line, first in chain)
        for name, chain in swept["tasks"].items()
    }
    [in_greenlet] = [sample for sample in swept["exact"] if sample.task == "waits in a greenlet"]
    waiting = [sample for sample in swept["exact"] if sample.task in chains and sample.state == "3"]
    waiting.remove(in_greenlet)  # Python's chain does not have what the greenlet does
    assert names_of(in_greenlet) == ("greenlet_spawn", "wait_in_greenlet", "await_only", "forever")
    [blocked] = [sample for sample in swept["exact"] if sample.task == "blocked in a greenlet"]
    root = names_of(blocked).index("block_in_greenlet")
    assert names_of(blocked)[root + 1 : root + 3] == ("greenlet_spawn", "block_in_greenlet.<locals>.sync_code")
    ends = [(sample.task, sample.frames[-len(chains[sample.task]) :]) for sample in waiting]
    assert [(task, end, chains[task]) for task, end in ends if end != chains[task]] == []
    assert sorted(sample.task for sample in swept["exact"] if sample.task) == sorted(
        [
            *("await_each_other", "beside the blocked", "blocked in a greenlet", "completed", "completed too"),
            *("eager child", "ended", "waits in a greenlet"),
            *NESTED,
            *("iterating", "leaf of a cycle", "limited task", "limited coroutine", "member", "next_of"),
            *("of an ended span", "shared", "shielded", "sibling", "spawned", "spawned by query", "throwing"),
            *("waited", "waited too", "wrapping"),
        ]
    )
    assert {sample.thread for sample in swept["exact"] if sample.link.strip("0")} == {
        "loop",
        "blocked",
        "span",
        "plain span",
    }


def test_a_read_that_fails_never_changes_a_sample(swept: Found) -> None:
    """Every read of a look, cold and warm, has failed: what is delivered is true, or marked as unread."""
    assert min(swept["reads"]) > 2000
    assert swept["faults"] > sum(swept["reads"]) / 2  # the others were touched only, to have them near
    assert untrue(swept["inexact"], swept["exact"])[:5] == []


def test_what_a_failed_read_costs_is_counted(swept: Found) -> None:
    """A look that is not exact has counted a reason."""
    assert len(swept["inexact"]) > 1000
    assert [number for number, what, _ in swept["inexact"] if what == "not counted"] == []


def test_the_look_after_a_failed_read_is_exact(swept: Found) -> None:
    """Nothing that a failed read has led to is remembered: not by the next look, and not for a time of rest."""
    assert swept["rests"]
    assert [(number, what) for number, what, _ in swept["inexact"] if what in ("afterwards", "rest")] == []


def test_a_thread_that_was_not_seen_for_once_gets_no_time_twice(swept: Found) -> None:
    """Its CPU time goes on where it was."""
    assert swept["pending_grown"] == 0


def test_failed_reads_leave_no_memory_behind(swept: Found) -> None:
    """Every block that looks have taken has been given back."""
    assert swept["held"] == 0


def test_failed_system_calls_are_as_harmless(tmp_path: Path) -> None:
    """The fallback reader: every 61st read in turn."""
    assert_harmless(run("plain", "fault_program.py", tmp_path, "syscall", 61))


def test_failed_reads_touch_no_memory_that_is_not_theirs(tmp_path: Path) -> None:
    """The address and undefined-behaviour sanitizers watch: every 29th read in turn."""
    assert_harmless(run("sanitized", "fault_program.py", tmp_path, "guarded", 29))


@pytest.mark.parametrize("kind", ["plain", "sanitized"])
def test_memory_that_comes_and_goes_under_the_readers_is_harmless(kind: str, tmp_path: Path) -> None:
    """Pages of tasks, coroutines, code and contexts are unmapped, protected and cut off at the end of their file."""
    found = run(kind, "churn_program.py", tmp_path, 300)
    original = [sample for sample in decode(found["original"]) if sample.thread == "loop"]
    assert sorted(sample for sample in found["exact"] if sample.thread == "loop") == sorted(original)
    assert found["faults"] >= 300
    assert found["drops"] > 0
    assert_harmless(found)
    assert found["again_exact"]
