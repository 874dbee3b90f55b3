"""What the profiler at its defaults costs a program with N suspended tasks: runs with and without it, interleaved.

usage: python benchmarks/overhead.py [--runs 5] [--seconds 4] [--tasks 10 1000 10000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time

GROUP = 10


async def wait() -> None:
    await asyncio.sleep(3600)


async def inner() -> None:
    await wait()


async def outer() -> None:
    await inner()


async def group() -> None:
    await asyncio.gather(*(outer() for _ in range(GROUP)))


async def work(seconds: float) -> tuple[float, float]:
    """Turns of a loop that works 20 us and lets others run, per CPU second; and the real time it took."""
    turns, begun, cpu = 0, time.perf_counter(), time.thread_time()
    while time.perf_counter() - begun < seconds:
        end = time.perf_counter() + 20e-6
        while time.perf_counter() < end:
            pass
        turns += 1
        await asyncio.sleep(0)
    return turns / (time.thread_time() - cpu), time.perf_counter() - begun


async def program(tasks: int, seconds: float, busy: bool) -> tuple[float, float]:
    """One run: tasks that wait for ever, and a loop that is busy or idle."""
    waiting = [asyncio.create_task(group()) for _ in range(tasks // GROUP)]
    await asyncio.sleep(0.5)
    if busy:
        result = await work(seconds)
    else:
        await asyncio.sleep(seconds)
        result = (0.0, seconds)
    for task in waiting:
        task.cancel()
    return result


def child(tasks: int, seconds: float, loop: str, profiled: bool) -> None:
    """Prints one run's figures as JSON."""
    from otel_asyncprof import Profiler
    from otel_asyncprof.export.in_memory import InMemoryProfileExporter

    profiler = Profiler(exporter=InMemoryProfileExporter())
    if profiled:
        profiler.start_or_raise()
    turns, real = asyncio.run(program(tasks, seconds, loop == "busy"))
    stats = profiler.stats() if profiled else None
    print(json.dumps({"turns": turns, "real": real + 0.5, "stats": stats}))
    profiler.shutdown()


def run(tasks: int, seconds: float, loop: str, profiled: bool) -> dict[str, object]:
    """One run in an interpreter of its own."""
    command = [sys.executable, __file__, "--child", str(tasks), str(seconds), loop, str(int(profiled))]
    result: dict[str, object] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--tasks", type=int, nargs="+", default=[10, 1000, 10000])
    parser.add_argument("--child", nargs=4)
    arguments = parser.parse_args()
    if arguments.child:
        tasks, seconds, loop, profiled = arguments.child
        return child(int(tasks), float(seconds), loop, profiled == "1")
    print(f"Python {sys.version.split()[0]}, {arguments.runs} pairs of runs of {arguments.seconds} s, medians")
    print("| tasks | loop | turns per CPU second, with / without | sampler, share of a core | looks per second |")
    print("|---|---|---|---|---|")
    for tasks in arguments.tasks:
        for loop in ("busy", "idle"):
            ratios, shares, rates = [], [], []
            for _ in range(arguments.runs):
                plain, profiled = (run(tasks, arguments.seconds, loop, on) for on in (False, True))
                stats = profiled["stats"]
                assert isinstance(stats, dict)
                real = float(str(profiled["real"]))
                if loop == "busy":
                    ratios.append(float(str(profiled["turns"])) / float(str(plain["turns"])))
                shares.append(stats["sampler_cpu_ns"] / 1e9 / real)
                rates.append(stats["ticks"] / real)
            ratio = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})" if ratios else "-"
            print(f"| {tasks} | {loop} | {ratio} | {statistics.median(shares):.2%} | {statistics.median(rates):.0f} |")
    return None


if __name__ == "__main__":
    main()
