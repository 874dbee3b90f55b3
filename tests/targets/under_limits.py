"""Threads, tasks and spans under whatever limits the process was given; prints what of them was in the profile.

usage: under_limits.py [stack=BYTES] [recursion=LIMIT] [variables=COUNT] [files] [exporter]
"""

import asyncio
import contextvars
import json
import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import Profiler, ProfilerConfig
from otel_asyncprof.export import ProfileExporter, ProfileExportResult
from otel_asyncprof.formats.stack_sample import StackSample, stack_samples

LEVELS = 400
PARENTHESES = 80  # as deep as a compiler goes before it refuses; takes some hundred kilobytes of stack
END = threading.Event()
OPTIONS = dict(argument.split("=") if "=" in argument else (argument, "") for argument in sys.argv[1:])
TRACER = TracerProvider().get_tracer("limits")


class CompilingExporter(ProfileExporter):
    """Takes much of its thread's stack."""

    def __init__(self) -> None:
        self.samples: list[StackSample] = []

    def export(self, requests: Sequence[bytes]) -> ProfileExportResult:
        eval("(" * PARENTHESES + "1" + ")" * PARENTHESES)
        self.samples += stack_samples(requests)
        return ProfileExportResult.SUCCESS


def rests() -> None:
    END.wait()


def spins() -> None:
    while not END.is_set():
        sum(range(1000))


def descends(levels: int) -> None:
    descends(levels - 1) if levels else END.wait()


async def waits() -> None:
    await asyncio.sleep(3600)


async def in_a_span() -> None:
    with TRACER.start_as_current_span("waits"):
        await waits()


async def gathers() -> None:
    await asyncio.gather(in_a_span(), waits())


def expected(sample: StackSample) -> str | None:
    """Which of the stacks above this is."""
    names, link = sample.functions, " linked" if sample.span_id else ""
    for end in (("rests", "Event.wait", "Condition.wait"), ("gathers", "in_a_span", "waits", "sleep")):
        if names[-len(end) :] == end:
            return " > ".join(end) + link
    if "spins" in names:
        return "spins"
    return "descends" if names.count("descends") > 100 else None


async def look(exporter: CompilingExporter) -> set[str | None]:
    tasks = [asyncio.create_task(gathers())]
    seen: set[str | None] = set()
    for _ in range(200):
        await asyncio.sleep(0.05)
        seen |= {expected(sample) for sample in exporter.samples}
        if len(seen - {None}) == 4:
            break
    for task in tasks:
        task.cancel()
    return seen - {None}


def use_files() -> list[int]:
    """All descriptors that there are."""
    used = []
    while True:
        try:
            used.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            return used


def main() -> dict[str, Any]:
    logging.basicConfig(level=logging.WARNING)
    sys.setrecursionlimit(int(OPTIONS.get("recursion", 1000)))
    for number in range(int(OPTIONS.get("variables", 0))):
        contextvars.ContextVar(f"variable {number}").set(number)
    exporter = CompilingExporter()
    profiler = Profiler(ProfilerConfig(rate=200, cpu_budget=1.0, interval=0.1), exporter=exporter)
    runner = asyncio.Runner()
    runner.get_loop()
    threading.stack_size(int(OPTIONS.get("stack", 0)))
    threads = [threading.Thread(target=target, daemon=True) for target in (rests, spins)]
    threads.append(threading.Thread(target=descends, args=(LEVELS,), daemon=True))
    for thread in threads:
        thread.start()
    profiler.start_or_raise()
    used = use_files() if "files" in OPTIONS else []
    seen = runner.run(look(exporter))
    complete = profiler.stop()
    size = threading.stack_size()
    END.set()
    for thread in threads:
        thread.join()
    for file in used:
        os.close(file)
    profiler.shutdown()
    return {"seen": sorted(map(str, seen)), "complete": complete, "stack": size}


print(json.dumps(main()))
