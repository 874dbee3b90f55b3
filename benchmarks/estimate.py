"""Whether a profile of some of the tasks tells the truth about all: five kinds of tasks whose time the program knows.

usage: python benchmarks/estimate.py [--tasks 50000] [--seconds 60] [--runs 20] [--json FILE]

    long         waits all the time
    short        lives 20 to 500 ms, and is made anew when it ends
    alternating  waits in one place for 1 to 2 s, in another for 3 to 6 s, and so on
    grouped      2 to 6 s under a gather() or a TaskGroup; a parent that waits for its children has no time of its own
    working      waits for 4 to 8 s, works for 0.1 ms, and so on

The time of a task that is ready, because the loop is late, is that of its kind; the loop's own CPU use is reported.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

GROUP = 10
SETTLE_SECONDS = 2.0
PERMILLE = {"long": 350, "short": 30, "alternating": 240, "grouped": 300, "working": 80}
# A kind's stacks, each named by its outermost function.
STACKS = {
    "long": ["long"],
    "short": ["short"],
    "alternating": ["first_wait", "second_wait"],
    "grouped": ["by_gather", "by_group"],
    "working": ["working"],
}


class Population:
    """The time of all its members: the integral of their number, exact to the nanosecond."""

    def __init__(self) -> None:
        self._members = 0
        self._sum = 0

    def enter(self, members: int = 1) -> None:
        self._members += members
        self._sum -= members * time.perf_counter_ns()

    def leave(self) -> None:
        self.enter(-1)

    def ns(self, now: int) -> int:
        return self._sum + self._members * now


TIMES = {stack: Population() for stacks in STACKS.values() for stack in stacks}
KEPT: list[asyncio.Task[None]] = []
SHORT: dict[int, asyncio.Task[None]] = {}


def start(coroutine: Any) -> None:
    KEPT.append(asyncio.create_task(coroutine))


async def long(never: asyncio.Event) -> None:
    await never.wait()


async def short(position: int) -> None:
    await asyncio.sleep(random.uniform(0.02, 0.5))
    TIMES["short"].leave()
    begin_short(position)


def begin_short(position: int) -> None:
    TIMES["short"].enter()
    SHORT[position] = asyncio.create_task(short(position))


async def first_wait() -> None:
    await asyncio.sleep(random.uniform(1, 2))


async def second_wait() -> None:
    await asyncio.sleep(random.uniform(3, 6))


async def spend(wait: Callable[[], Awaitable[None]]) -> None:
    TIMES[wait.__name__].enter()
    await wait()
    TIMES[wait.__name__].leave()


async def alternating() -> None:
    if random.random() < 0.75:
        await spend(second_wait)
    while True:
        await spend(first_wait)
        await spend(second_wait)


class Round:
    """One round of a group: the first child takes the place of the parent, the last one that ends gives it back."""

    def __init__(self, time_of: Population) -> None:
        self._time = time_of
        self._left = GROUP
        time_of.enter(GROUP - 1)

    async def member(self) -> None:
        await asyncio.sleep(random.uniform(2, 6))
        self._left -= 1
        if self._left:
            self._time.leave()


async def by_gather() -> None:
    while True:
        this = Round(TIMES["by_gather"])
        await asyncio.gather(*(this.member() for _ in range(GROUP)))


async def by_group() -> None:
    while True:
        this = Round(TIMES["by_group"])
        async with asyncio.TaskGroup() as group:
            for _ in range(GROUP):
                group.create_task(this.member())


async def working() -> None:
    await asyncio.sleep(random.uniform(0, 6))
    while True:
        work()
        await asyncio.sleep(random.uniform(4, 8))


def work() -> None:
    end = time.thread_time_ns() + 100_000
    while time.thread_time_ns() < end:
        pass


async def populate(tasks: int) -> None:
    """In small steps: a loop that is late for seconds would never catch up."""
    never = asyncio.Event()
    simple: dict[str, Callable[[], Awaitable[None]]] = {"long": lambda: long(never), "working": working}
    for kind, make in simple.items():
        for _ in range(tasks * PERMILLE[kind] // 1000):
            TIMES[kind].enter()
            start(make())
        await asyncio.sleep(0.1)
    groups = tasks * PERMILLE["grouped"] // 1000 // GROUP
    for number in range(groups):
        make_group = by_gather if number % 2 else by_group
        TIMES[make_group.__name__].enter()
        start(make_group())
        if number % 20 == 0:
            await asyncio.sleep(0.001)
    for number in range(tasks * PERMILLE["alternating"] // 1000):
        start(alternating())
        if number % 200 == 0:
            await asyncio.sleep(0.001)
    for number in range(tasks * PERMILLE["short"] // 1000):
        begin_short(number)
        if number % 200 == 0:
            await asyncio.sleep(0.01)
    await asyncio.sleep(SETTLE_SECONDS)


def truth() -> dict[str, int]:
    now = time.perf_counter_ns()
    return {stack: population.ns(now) for stack, population in TIMES.items()}


async def measure(tasks: int, seconds: float) -> dict[str, Any]:
    """One run: the true and the estimated seconds of each stack, and what the sampler did."""
    from otel_asyncprof import ProfilerConfig
    from otel_asyncprof.testing import capture

    defaults = ProfilerConfig()
    await populate(tasks)
    with capture(
        defaults.rate, cpu_budget=defaults.cpu_budget, sample_attributes=defaults.sample_attributes
    ) as profile:
        before, begun, cpu = truth(), time.perf_counter(), time.thread_time()
        await asyncio.sleep(seconds)
        after, real, cpu = truth(), time.perf_counter() - begun, time.thread_time() - cpu
    estimate = dict.fromkeys(TIMES, 0)
    other = 0
    for sample in profile.samples:
        stack = next((name for name in sample.functions if name in TIMES), None)
        if stack is not None:
            estimate[stack] += sample.wall_ns
        elif "alternating" in sample.functions or "Round.member" in sample.functions:
            other += sample.wall_ns
    stats = profile.stats
    return {
        "seconds": real,
        "truth": {stack: (after[stack] - before[stack]) / 1e9 for stack in TIMES},
        "estimate": {stack: ns / 1e9 for stack, ns in estimate.items()},
        "incomplete": other / 1e9,
        "window": stats.window,
        "ticks_per_second": stats.ticks / real,
        "visits_per_second": stats.tasks_visited / real,
        "sampler_share": stats.sampler_cpu_seconds / real,
        "loop_share": cpu / real,
        "drops": stats.drops,
    }


def shares(seconds: dict[str, float]) -> dict[str, float]:
    """Percentages of each kind, and of each stack of a kind that has several."""
    whole = sum(seconds.values())
    found = {kind: sum(seconds[stack] for stack in stacks) for kind, stacks in STACKS.items()}
    found |= {stack: seconds[stack] for stacks in STACKS.values() for stack in stacks if len(stacks) > 1}
    return {name: 100 * value / whole for name, value in found.items()}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The errors, in percentage points of all five kinds' time."""
    true, estimated = ([shares(run[which]) for run in runs] for which in ("truth", "estimate"))
    names = list(true[0])
    rows = {}
    for name in names:
        errors = [of_estimate[name] - of_truth[name] for of_estimate, of_truth in zip(estimated, true, strict=True)]
        rows[name] = {
            "truth": statistics.mean(run[name] for run in true),
            "estimate": statistics.mean(run[name] for run in estimated),
            "mean_error": statistics.mean(errors),
            "worst_error": max(errors, key=abs),
        }
    kinds = [rows[kind] for kind in STACKS]
    return {
        "rows": rows,
        "worst_of_a_run": max(abs(row["worst_error"]) for row in kinds),
        "worst_mean": max(abs(row["mean_error"]) for row in kinds),
        "whole_time_seen": statistics.mean(sum(run["estimate"].values()) / sum(run["truth"].values()) for run in runs),
        "incomplete": max(run["incomplete"] / sum(run["truth"].values()) for run in runs),
    } | {
        name: statistics.median(run[name] for run in runs)
        for name in ("window", "ticks_per_second", "visits_per_second", "sampler_share", "loop_share")
    }


def machine() -> dict[str, str]:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": f"{os.cpu_count()} x {names[0].partition(': ')[2] if names else platform.processor()}",
    }


def markdown(arguments: argparse.Namespace, found: dict[str, Any], about: dict[str, str]) -> str:
    lines = [
        f"CPython {about['python']}, {about['processor']}, {about['system']}; {arguments.tasks} tasks, "
        f"{arguments.runs} runs of {arguments.seconds:g} s, the profiler's defaults.",
        "",
        "| kind | true share | estimate, mean | error of the mean, points | worst error of a run, points |",
        "|---|---|---|---|---|",
    ]
    for name, row in found["rows"].items():
        label = name if name in STACKS else f"of these: {name}"
        lines.append(
            f"| {label} | {row['truth']:.2f} % | {row['estimate']:.2f} % | {row['mean_error']:+.3f} "
            f"| {row['worst_error']:+.3f} |"
        )
    lines += [
        "",
        f"Worst of a run {found['worst_of_a_run']:.3f} points, worst mean {found['worst_mean']:.3f} points. "
        f"Estimated time of all kinds / true time: {found['whole_time_seen']:.4f}. "
        f"Stacks without their parent: at most {found['incomplete']:.4%}.",
        f"Medians: window M = {found['window']:.1f}, {found['ticks_per_second']:.1f} ticks and "
        f"{found['visits_per_second']:.0f} visits of tasks a second, sampler {found['sampler_share']:.2%} of a core, "
        f"loop {found['loop_share']:.0%} of a core.",
    ]
    return "\n".join(lines)


def run(tasks: int, seconds: float) -> dict[str, Any]:
    """One run in an interpreter of its own."""
    command = [sys.executable, __file__, "--child", "--tasks", str(tasks), "--seconds", str(seconds)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(asyncio.run(measure(arguments.tasks, arguments.seconds))), flush=True)
        os._exit(0)  # nothing is gained by cancelling the tasks
    runs = [run(arguments.tasks, arguments.seconds) for _ in range(arguments.runs)]
    found, about = summary(runs), machine()
    print(markdown(arguments, found, about))
    if arguments.json:
        result = {"machine": about, "tasks": arguments.tasks, "summary": found, "runs": runs}
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
