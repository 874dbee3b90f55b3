"""Targets of the behaviour tests with every k-th read of the sampler failing: less is seen, nothing else."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from stress.fault_build import TESTS, environment
from stress.fault_results import are_frames_of

LOOPS = ["asyncio", "uvloop", *(["eager"] if sys.version_info >= (3, 12) else [])]
OFTEN, SOMETIMES, SELDOM = 61, 307, 1999  # of so many reads one fails: from one in two tasks to a few in a look
MOST_RUNS, LEAST_FAULTS = 20, 20
MOST_HELD_BLOCKS = 64  # at the end: some 40, for the tables of the last interval
SYNTHETIC = {"<unreadable>", "<truncated>", "<frames omitted>"}
MOVING = ["deep_recursion", "shared_thread", "eager_first_step", "running_over_tasks"]
# Some of the other targets of the behaviour tests, on each Python other ones.
OTHERS = {
    11: ["end_of_a_task", "two_spans", "task_tree"],
    12: ["inline_and_task", "context_managers", "two_loops"],
    13: ["running_generators", "task_group", "timeouts"],
    14: ["callbacks", "unawaited", "async_generators"],
}
SETTLED = {
    *("two_spans", "task_tree", "context_managers", "two_loops"),
    *("task_group", "timeouts", "unawaited", "async_generators"),
}

RunTarget = Callable[..., dict[str, Any]]


class Runner:
    """Runs targets, each in a fork of one process, with every so many reads failing; 0 is none."""

    def __init__(self, every: int, folder: Path) -> None:
        self._folder = folder
        failing = {"OTEL_ASYNCPROF_TEST_FAIL_EVERY": str(every)} if every else {}
        command, pipe = [sys.executable, str(TESTS / "run_target.py")], subprocess.PIPE
        environs = environment("plain") | failing
        self.process = subprocess.Popen(command, env=environs, stdin=pipe, stdout=pipe, text=True)

    def __call__(self, target: str, loop: str, capture: str) -> dict[str, Any]:
        result, errors = (self._folder / f"{target}-{loop}.{kind}" for kind in ("json", "txt"))
        order = {"target": target, "loop": loop, "capture": capture, "options": {}}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order | {"result": str(result), "errors": str(errors)}) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "0\n", errors.read_text(encoding="utf-8")
        written = json.loads(result.read_text(encoding="utf-8"))
        assert 0 < written["held_blocks"] <= MOST_HELD_BLOCKS
        return written["report"] | written["report"]["captures"][0]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Runner]]:
    """A runner for each number of reads of which one fails."""
    made: dict[int, Runner] = {}

    def of(every: int) -> Runner:
        if every not in made:
            made[every] = Runner(every, tmp_path_factory.mktemp(f"every_{every}"))
        return made[every]

    yield of
    for each in made.values():
        assert each.process.stdin is not None
        each.process.stdin.close()
        assert each.process.wait(timeout=60) == 0


def frames_of(sample: dict[str, Any]) -> list[str]:
    return ["{} ({}:{} of {})".format(*frame) for frame in sample["frames"]]


def stacks_of_tasks(found: dict[str, Any]) -> set[tuple[str, tuple[str, ...]]]:
    """Task and stack, of all samples that are a task's."""
    return {(sample["task_name"], tuple(frames_of(sample))) for sample in found["samples"] if sample["task_name"]}


def assert_failing(found: dict[str, Any]) -> None:
    """Reads have failed, and what that cost is counted."""
    assert found["stats"]["faults"] > 0
    assert found["stats"]["drops"].keys() - {"late_tick"}


@functools.cache
def lines_of(file: str) -> dict[tuple[str, int], set[int]]:
    """Function and first line -> all its lines, from the source."""

    def codes(code: CodeType) -> Iterator[CodeType]:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from codes(constant)

    known: dict[tuple[str, int], set[int]] = {}
    for code in codes(compile(Path(file).read_text(encoding="utf-8"), file, "exec", dont_inherit=True)):
        lines = {line for _, _, line in code.co_lines() if line is not None}
        known.setdefault((code.co_qualname, code.co_firstlineno), set()).update(lines)
    return known


def is_in_its_source(function: str, file: str, line: int, first_line: int) -> bool:
    """Whether a function of that name begins at that line of that file and goes through this line."""
    return function in SYNTHETIC or line in lines_of(file).get((function, first_line), set())


def reference(run: Runner, loop: str) -> set[tuple[str, tuple[str, ...]]]:
    """All stacks of tasks that are there without faults: runs are added until one has nothing new."""
    known: set[tuple[str, tuple[str, ...]]] = set()
    while new := stacks_of_tasks(run("every_way", loop, "settled")) - known:
        known |= new
    return known


@pytest.mark.parametrize("loop", LOOPS)
def test_no_stack_of_a_task_is_seen_that_is_not_there_without_faults(
    runner: Callable[[int], Runner], loop: str
) -> None:
    """All ways to await, while every task is suspended; a loaded machine may need several runs for enough looks."""
    true = reference(runner(0), loop)
    by_task: dict[str, list[tuple[str, ...]]] = {}
    for task, frames in true:
        by_task.setdefault(task, []).append(frames)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    faults = 0
    for run in range(MOST_RUNS):
        found = runner((SELDOM, OFTEN)[run % 2])("every_way", loop, "settled")
        stacks, faults = stacks_of_tasks(found), faults + found["stats"]["faults"]
        assert [
            (task, frames)
            for task, frames in stacks
            if not any(are_frames_of(frames, others) for others in by_task.get(task, []))
        ] == []
        seen |= stacks
        if run and faults > LEAST_FAULTS and len(seen & true) > len(true) / 2:
            return
    pytest.fail(f"{faults} faults, {len(seen & true)} of {len(true)} stacks seen")


def test_no_link_and_no_stack_is_another_requests(runner: Callable[[int], Runner]) -> None:
    """200 requests at once, each with functions of its own: a sample's link is its own span or none."""
    found = runner(SOMETIMES)("requests", "asyncio", "own")
    assert_failing(found)
    spans: dict[str, int] = found["spans"]
    wrong, numbers = [], set()
    for sample in found["samples"]:
        own = [function for function, *_ in sample["frames"] if function in spans]
        numbers.add(frozenset(name.split()[-1] for name in own))
        if sample["span_id"] and sample["span_id"] not in ([spans[own[-1]]] if own else spans.values()):
            wrong.append((own, sample["span_id"]))
    assert wrong == []
    assert max(map(len, numbers)) == 1


@pytest.mark.parametrize("target", MOVING + OTHERS.get(sys.version_info.minor, []))
def test_every_frame_that_is_seen_stands_in_its_source(runner: Callable[[int], Runner], target: str) -> None:
    """No name, file or line that is not there; a run on a loaded machine may have too few looks for a fault."""
    for _ in range(MOST_RUNS):
        found = runner(OFTEN)(target, LOOPS[-1], "settled" if target in SETTLED else "own")
        frames = {tuple(frame) for sample in found["samples"] for frame in sample["frames"]}
        assert [frame for frame in frames if not is_in_its_source(*frame)] == []
        if found["stats"]["faults"]:
            return assert_failing(found)
    return pytest.fail("no read has failed")
