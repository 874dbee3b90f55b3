"""Makes COUNT things of a kind, each with a name of its own, in batches; what is held is noted after each batch.

First without the profiler, then with it.

usage: churn.py KIND COUNT INTERVAL   (seconds between exports)
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import itertools
import json
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path

from counting import CountingExporter, counter, profiler, ticks, wait_for, watch_extension
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import _native

BATCHES = 20
DEPTH = 60
PAGE_KIB = 4
SOURCE = "def function_{0}():\n for i in range(100): pass\nasync def coroutine_{0}(turns):\n await turns()\n"
TRACER = TracerProvider().get_tracer("churn")


async def turns() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def works() -> None:
    for _ in range(100):
        pass


def tasks(names: Iterator[int], count: int) -> None:
    """Tasks that wait and run."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.create_task(turns(), name=f"task {next(names)} of many") for _ in range(count)))

    asyncio.run(main())


def functions(names: Iterator[int], count: int) -> None:
    """Functions and coroutine functions from source text, in files of their own."""

    async def main() -> None:
        for _ in range(count):
            number, namespace = next(names), dict[str, Callable[..., object]]()
            exec(compile(SOURCE.format(number), f"/generated/module_{number}.py", "exec"), namespace)
            namespace[f"function_{number}"]()
            await namespace[f"coroutine_{number}"](turns)  # type: ignore[misc]

    asyncio.run(main())


def codes(names: Iterator[int], count: int) -> None:
    """Code objects with names and files of their own, as decorators and templates make them."""
    for _ in range(count):
        number = next(names)
        code = works.__code__.replace(co_name=f"n{number}", co_qualname=f"q{number}", co_filename=f"/f{number}.py")
        types.FunctionType(code, {"range": range})()


def threads(names: Iterator[int], count: int) -> None:
    """Threads that work a little."""
    for _ in range(count):
        thread = threading.Thread(target=works, name=f"thread number {next(names)}")
        thread.start()
        thread.join()


def spans(names: Iterator[int], count: int) -> None:
    """Spans of traces and local roots of their own; every tenth root is never ended."""

    async def request(number: int) -> None:
        root = TRACER.start_as_current_span(f"root {number}", end_on_exit=number % 10 != 0)
        with root, TRACER.start_as_current_span(f"child {number}"):
            await turns()

    async def main() -> None:
        await asyncio.gather(*(request(next(names)) for _ in range(count)))

    asyncio.run(main())


def left(number: int, depth: int) -> None:
    (left if number & 1 else right)(number >> 1, depth - 1) if depth else works()


def right(number: int, depth: int) -> None:
    (left if number & 1 else right)(number >> 1, depth - 1) if depth else works()


def stacks(names: Iterator[int], count: int) -> None:
    """Deep stacks no two of which are the same."""
    for _ in range(count):
        left(next(names) * 0x9E3779B97F4A7C15 % (1 << DEPTH), DEPTH)


def resident_kib() -> int:
    """Resident memory that belongs to no file."""
    _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    return (int(resident) - int(shared)) * PAGE_KIB


class MallocInfo(ctypes.Structure):
    """What mallinfo2() tells of malloc's first arena and of blocks with mappings of their own."""

    _fields_ = tuple((f"unused_{n}", ctypes.c_size_t) for n in range(4)) + tuple(
        (name, ctypes.c_size_t) for name in ("mapped", "unused_5", "unused_6", "given_out", "unused_8", "unused_9")
    )


def given_out_elsewhere() -> int:
    """Bytes that malloc has given to others than the extension; exact where it keeps no caches of freed blocks."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallocInfo
    info = mallinfo()
    return int(info.mapped + info.given_out) - counter("code_held_bytes")


def churn(kind: Callable[[Iterator[int], int], None], names: Iterator[int], count: int) -> list[list[int]]:
    """After each batch: bytes of the extension, blocks of Python objects, resident KiB, what malloc gave to others."""
    notes = []
    for _ in range(BATCHES):
        kind(names, count // BATCHES)
        gc.collect()
        notes.append([counter("code_held_bytes"), sys.getallocatedblocks(), resident_kib(), given_out_elsewhere()])
    return notes


def main(kind: Callable[[Iterator[int], int], None], count: int, interval: float) -> None:
    exporter, names = CountingExporter(), itertools.count()
    watch_extension()
    alone = churn(kind, names, count)
    chosen = profiler(exporter, interval=interval)
    held = []
    for some in (0, count, 0):
        chosen.start_or_raise()
        wait_for(lambda: ticks() > 0)
        if some:
            notes, stats = churn(kind, names, some), _native.stats()
        chosen.stop()
        held.append(counter("code_held_bytes"))
    report = {"alone": alone, "notes": notes, "fresh": held[0], "anew": held[2], "intervals": exporter.intervals}
    print(json.dumps(report | {name: stats[name] for name in ("ticks", "samples", "drops")}))


KINDS = {kind.__name__: kind for kind in (tasks, functions, codes, threads, spans, stacks)}
main(KINDS[sys.argv[1]], int(sys.argv[2]), float(sys.argv[3]))
