"""Compares a profile with what Python itself says: full stacks, every frame with name, file, line and first line."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import copy
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Frame = tuple[str, str, int, int]
UNREADABLE = {"<unreadable>", "<truncated>"}
Stacks = dict[str, set[str]]

# Where a task waits for the members of its group: one function, or two in later releases.
GROUP_END = ("TaskGroup.__aexit__", *(("TaskGroup._aexit",) if hasattr(asyncio.TaskGroup, "_aexit") else ()))

# Below a job of a thread pool; later releases have one function more.
IN_POOL = (
    *("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", "_worker", "_WorkItem.run"),
    *(("WorkerContext.run",) if hasattr(concurrent.futures.thread, "WorkerContext") else ()),
)

BURN_LINE_OF_BURN = 3  # lines after its first: the loop of targets.support.burn()


@dataclass(frozen=True)
class Sample:
    """One decoded sample; frames are root first."""

    frames: tuple[Frame, ...]
    task_name: str
    thread_name: str
    state: str
    trace_id: int
    span_id: int
    cpu_ns: int
    wall_ns: int
    timestamps: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(frame[0] for frame in self.frames)

    @property
    def leaf(self) -> str:
        return self.frames[-1][0]


def render(frames: Iterable[Frame]) -> str:
    """A stack as one line: the form in which stacks are compared and differences are shown."""
    return " > ".join(f"{function} ({file}:{line} of {first})" for function, file, line, first in frames)


def is_bookkeeping(function: str) -> bool:
    """Whether a frame is the targets' own looking at Python and starting of the profiler: no part of any behaviour."""
    return function.startswith(("phase.", "Conductor.")) or function == "_remember_running"


def decode(sample: dict[str, Any]) -> Sample:
    frames = tuple((function, file, line, first_line) for function, file, line, first_line in sample["frames"])
    return Sample(
        frames=frames,
        task_name=sample["task_name"] or "",
        thread_name=sample["thread_name"] or "",
        state=sample["state"],
        trace_id=sample["trace_id"],
        span_id=sample["span_id"],
        cpu_ns=sample["cpu_ns"],
        wall_ns=sample["wall_ns"],
        timestamps=tuple(sample["timestamps"]),
    )


class Run:
    """What one run of a target gave."""

    def __init__(self, result: dict[str, Any], capture: int = 0) -> None:
        self.report = copy.deepcopy({key: value for key, value in result["report"].items() if key != "captures"})
        self.snapshots = result["snapshots"]
        self.stderr: str = result["stderr"]
        captured = result["report"]["captures"][capture]
        self.stats: dict[str, Any] = captured["stats"]
        self.cpu: float = captured["cpu"]
        self.wall: float = captured["wall"]
        self.all_samples = [decode(sample) for sample in captured["samples"]]
        self.samples = [sample for sample in self.all_samples if not any(map(is_bookkeeping, sample.names))]

    # what was sampled

    def select(self, wanted: Callable[[Sample], bool]) -> list[Sample]:
        return [sample for sample in self.samples if wanted(sample)]

    def of_task(self, name: str) -> list[Sample]:
        return self.select(lambda sample: sample.task_name == name)

    def with_function(self, name: str) -> list[Sample]:
        return self.select(lambda sample: name in sample.names)

    def owner(self, sample: Sample) -> str:
        """The innermost function for which the target said what its link must be; empty when there is none."""
        spans = self.report["spans"]
        return next((name for name in reversed(sample.names) if name in spans), "")

    def links(self) -> dict[str, set[int]]:
        """The span ids with which each of those functions worked or waited; 0 from 3 % of its time on."""
        owned: dict[str, list[Sample]] = defaultdict(list)
        for sample in self.samples:
            if sample.leaf in ("burn", "sleep", "Condition.wait") and (owner := self.owner(sample)):
                owned[owner].append(sample)
        links = {}
        for owner, samples in owned.items():
            linked = [sample for sample in samples if sample.span_id]
            links[owner] = {
                sample.span_id for sample in (linked if linked and share(linked, samples) >= 0.97 else samples)
            }
        return links

    def expected_links(self) -> dict[str, set[int]]:
        return {function: {span} for function, span in self.report["spans"].items()}

    def waiting(self) -> Stacks:
        """Every suspended task that gave samples, with its full stacks."""
        return stacks_by_task(self.select(lambda sample: sample.state == "waiting" and sample.task_name != ""))

    def burning(self) -> Stacks:
        """Every task seen in the loop of burn(), with its full stacks."""
        return stacks_by_task(sample for sample in self.in_the_loop_of_burn() if sample.task_name != "")

    def threads_burning(self) -> Stacks:
        """Every thread seen in the loop of burn() without a task, with its full stacks."""
        return stacks_by_thread(sample for sample in self.in_the_loop_of_burn() if sample.task_name == "")

    def in_the_loop_of_burn(self) -> list[Sample]:
        """The line before it is true now and then too, but what Python says is about the loop."""
        burning = self.select(lambda sample: sample.leaf == "burn")
        return [sample for sample in burning if sample.frames[-1][2] - sample.frames[-1][3] == BURN_LINE_OF_BURN]

    def threads_waiting(self) -> Stacks:
        """Every thread off CPU without a task, with its full stacks."""
        return stacks_by_thread(self.select(lambda sample: sample.state == "waiting" and sample.task_name == ""))

    def names(self, samples: Iterable[Sample]) -> set[tuple[str, ...]]:
        return {sample.names for sample in samples}

    # what Python says

    def expect_waiting(self, *texts: str, thread: str = "MainThread") -> Stacks:
        """Expected stacks of suspended tasks, each written "task: function > function | task: function"."""
        return self._expect(texts, thread, running=False)

    def expect_burning(self, *texts: str, thread: str = "MainThread") -> Stacks:
        """The same for tasks inside burn(): the last task's frames are those Python had on its stack."""
        return self._expect(texts, thread, running=True)

    def python_burning(self, above: str = "") -> Stacks:
        """Every stack that Python had inside burn(), in tasks that stand on the given ones."""
        return self._expect(
            (
                f"{above}{task}: {' > '.join(frame[0] for frame in frames)}"
                for shot in self.snapshots
                for task, frames in shot.get("running", {}).items()
            ),
            "MainThread",
            running=True,
        )

    def python_threads(self, kind: str) -> Stacks:
        """Python's own stacks of threads: kind is "thread_running" (inside burn) or "threads" (as they stood)."""
        expected: Stacks = defaultdict(set)
        for shot in self.snapshots:
            for name, frames in shot.get(kind, {}).items():
                expected[name].add(render(map(tuple, frames)))
        return dict(expected)

    def _expect(self, texts: Iterable[str], thread: str, running: bool) -> Stacks:
        expected: Stacks = defaultdict(set)
        for text in texts:
            found = [stack for shot in self.snapshots if (stack := resolve(shot, text, thread, running)) is not None]
            assert found, f"the program never had this stack: {text}\n{self._describe()}"
            expected[text.split(" | ")[-1].split(": ")[0]].update(map(render, found))
        return dict(expected)

    def _describe(self) -> str:
        lines = []
        for shot in self.snapshots:
            for kind in ("tasks", "running"):
                lines += [
                    f"  {kind} {task}: {' > '.join(f[0] for f in frames)}"
                    for task, frames in shot.get(kind, {}).items()
                ]
        return "\n".join(dict.fromkeys(lines))


RunTarget = Callable[..., Run]


def checked(result: dict[str, Any], index: int) -> Run:
    """The run, once it is sure that its profile is nearly free of unreadable stacks (R8)."""
    profile = Run(result, index)
    unreadable = [sample for sample in profile.all_samples if UNREADABLE & set(sample.names)]
    assert profile.all_samples, f"no samples; stats: {profile.stats}"
    assert wall_seconds(unreadable) <= 0.01 * wall_seconds(profile.all_samples), (
        f"unreadable: {unreadable[:3]}; stats: {profile.stats}"
    )
    return profile


def resolve(shot: dict[str, Any], text: str, thread: str, running: bool) -> list[Frame] | None:
    """The full stack that a text names, with Python's lines; None when the snapshot has no such stack."""
    frames: list[Frame] = [tuple(frame) for frame in shot["entry"].get(thread, [])]
    parts = text.split(" | ")
    for index, part in enumerate(parts):
        task, functions = part.split(": ")
        kind = "running" if running and index == len(parts) - 1 else "tasks"
        own = shot.get(kind, {}).get(task, [])
        if [frame[0] for frame in own] != functions.split(" > "):
            return None
        frames += [tuple(frame) for frame in own]
    return frames


def stacks_by_task(samples: Iterable[Sample]) -> Stacks:
    stacks: Stacks = defaultdict(set)
    for sample in samples:
        stacks[sample.task_name].add(render(sample.frames))
    return dict(stacks)


def stacks_by_thread(samples: Iterable[Sample]) -> Stacks:
    stacks: Stacks = defaultdict(set)
    for sample in samples:
        stacks[sample.thread_name].add(render(sample.frames))
    return dict(stacks)


def cpu_seconds(samples: Iterable[Sample]) -> float:
    return sum(sample.cpu_ns for sample in samples) / 1e9


def wall_seconds(samples: Iterable[Sample]) -> float:
    return sum(sample.wall_ns for sample in samples) / 1e9


def share(part: Iterable[Sample], whole: Iterable[Sample]) -> float:
    """The part of the wall time of some samples that others hold."""
    return wall_seconds(part) / wall_seconds(whole)
