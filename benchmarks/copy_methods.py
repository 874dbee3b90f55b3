"""Ways to read memory that may be gone: what each costs by itself, and what it makes of the whole profiler.

usage: python benchmarks/copy_methods.py [--runs 5] [--seconds 4] [--tasks 1000 10000] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from otel_asyncprof import Profiler, _native
from otel_asyncprof.export.in_memory import InMemoryProfileExporter

ROOT = Path(__file__).resolve().parents[1]
EXT = ROOT / "ext"
SOURCES = [*sorted(EXT.glob("safe_copy*.c")), EXT / "signals.c", EXT / "clock.c", EXT / "os" / "linux.c"]
COMPILER = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{EXT}"]
GROUP = 10
METHODS = ("guarded", "syscall")
DEFAULT_BUDGET, WHOLE_CORE = 0.01, 1.0
LIMIT_SECONDS = 120

Row = dict[str, Any]


def measure_reads() -> list[list[str]]:
    """Method, then nanoseconds per read of 64 bytes: warm, scattered, chased, faulting."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "copy_methods"
        command = [*COMPILER, str(Path(__file__).with_suffix(".c")), *map(str, SOURCES), "-o", str(program)]
        subprocess.run(command, check=True, timeout=LIMIT_SECONDS)
        done = subprocess.run([program], check=True, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    return [line.split("\t") for line in done.stdout.splitlines()]


async def wait() -> None:
    """The innermost of four coroutines."""
    await asyncio.get_running_loop().create_future()


async def inner() -> None:
    await wait()


async def outer() -> None:
    await inner()


async def serve() -> None:
    await outer()


async def group() -> None:
    await asyncio.gather(*(serve() for _ in range(GROUP)))


async def keep_loop(busy: bool, seconds: float) -> None:
    """A loop that works 20 us and lets others run, or one that sleeps."""
    end = time.perf_counter() + seconds
    if not busy:
        await asyncio.sleep(seconds)
    while time.perf_counter() < end:
        pause = time.perf_counter() + 20e-6
        while time.perf_counter() < pause:
            pass
        await asyncio.sleep(0)


async def program(tasks: int, busy: bool, seconds: float, profiler: Profiler) -> float:
    """Profiles one run; the real time that it took, which is longer when the sampler has to end a long tick."""
    groups = [asyncio.create_task(group()) for _ in range(tasks // GROUP)]
    for _ in range(3):
        await asyncio.sleep(0)
    begun = time.perf_counter()
    profiler.start_or_raise()
    await keep_loop(busy, seconds)
    profiler.stop()
    real = time.perf_counter() - begun
    for task in groups:
        task.cancel()
    return real


def child(tasks: int, loop: str, method: str, budget: float, seconds: float) -> Row:
    """One run in this process."""
    start = _native.start

    def start_without_handlers(**options: Any) -> None:
        start(**(options | {"no_signal_handlers": True}))

    if method == "syscall":
        _native.start = start_without_handlers
    profiler = Profiler(exporter=InMemoryProfileExporter(), cpu_budget=budget)
    real = asyncio.run(program(tasks, loop == "busy", seconds, profiler))
    stats: Row = dict(_native.stats())
    assert stats["copy_method"] == method
    cpu_us, ticks, visited = stats["sampler_cpu_ns"] / 1e3, stats["ticks"], stats["tasks_visited"]
    return {
        "share": cpu_us / 1e6 / real,
        "ticks": ticks / real,
        "tick_us": cpu_us / ticks if ticks else None,
        "visits": visited / real,
        "visit_us": stats["visit_ns"] / 1e3 if visited else None,  # without what a tick costs in any case
        "window": stats["window"],
    }


def run(tasks: int, loop: str, method: str, budget: float, seconds: float) -> Row:
    """One run in an interpreter of its own."""
    command = [sys.executable, __file__, "--child", str(tasks), loop, method, str(budget), str(seconds)]
    row: Row = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_SECONDS).stdout)
    return row


def median(rows: list[Row], key: str) -> float | None:
    """None when no row has that figure."""
    values = [row[key] for row in rows if row[key] is not None]
    return statistics.median(values) if values else None


def saved(runs: dict[str, list[Row]]) -> float | None:
    """Share of the CPU time per visited task that the guarded copy saves: the median over pairs of runs."""
    pairs = zip(runs["guarded"], runs["syscall"], strict=True)
    ratios = [ours["visit_us"] / other["visit_us"] for ours, other in pairs if ours["visit_us"] and other["visit_us"]]
    return 1 - statistics.median(ratios) if ratios else None


def measure_profiler(tasks: int, loop: str, budget: float, runs: int, seconds: float) -> Row:
    """The same sampler with either method, in turn."""
    rows: dict[str, list[Row]] = {method: [] for method in METHODS}
    for _ in range(runs):
        for method in METHODS:
            rows[method].append(run(tasks, loop, method, budget, seconds))
    keys = rows["guarded"][0].keys()
    figures = {method: {key: median(rows[method], key) for key in keys} for method in METHODS}
    return {"tasks": tasks, "loop": loop, "budget": budget, "saved": saved(rows), **figures}


def cell(value: float | None, form: str) -> str:
    """A figure, or a dash where there is none."""
    return "-" if value is None else format(value, form)


def print_reads(reads: list[list[str]]) -> None:
    """The table of single reads."""
    print("Nanoseconds per read of 64 bytes; addresses in 16 lines, at random in 512 MB, and at random with each known")
    print("only from the read before; what a read costs whose address is bad.\n")
    print("| method | warm | random | chased | bad address |\n|---|---:|---:|---:|---:|")
    for method, *figures in reads:
        print(f"| {method} | {' | '.join(figures)} |")


def print_profiler(measured: list[Row]) -> None:
    """The table of the whole sampler."""
    print("\nThe whole sampler with either method, from start to stop: all its CPU time per tick, that of a tick's")
    print(
        "suspended tasks per visit. The share may be above what is allowed, by the credit of one second with which each"
    )
    print("run begins, and by its last tick.\n")
    print("| tasks | loop | CPU allowed | copy | ticks/s | µs/tick | visits/s | µs/visit | share | window | saved |")
    print("|---:|---|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for row in measured:
        for method in METHODS:
            figures = row[method]
            print(
                f"| {row['tasks']} | {row['loop']} | {row['budget']:.0%} | {method} | {cell(figures['ticks'], '.1f')}"
                f" | {cell(figures['tick_us'], ',.0f')} | {cell(figures['visits'], ',.0f')}"
                f" | {cell(figures['visit_us'], '.2f')} | {cell(figures['share'], '.2%')}"
                f" | {cell(figures['window'], '.1f')} | {cell(row['saved'], '.0%') if method == 'guarded' else ''} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--tasks", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        tasks, loop, method, budget, seconds = arguments.child
        print(json.dumps(child(int(tasks), loop, method, float(budget), float(seconds))))
        return
    reads = measure_reads()
    print_reads(reads)
    measured = [
        measure_profiler(tasks, loop, budget, arguments.runs, arguments.seconds)
        for tasks in arguments.tasks
        for loop in ("busy", "idle")
        for budget in (DEFAULT_BUDGET, WHOLE_CORE)
    ]
    print_profiler(measured)
    if arguments.json:
        arguments.json.write_text(json.dumps({"reads": reads, "profiler": measured}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
