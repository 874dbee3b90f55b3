"""Starts and stops a profiler many times, also in races of threads, and prints what has grown since the warm-up."""

import atexit
import contextvars
import ctypes
import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import opentelemetry.context

import otel_asyncprof._profiler as profiler_module
from otel_asyncprof import Profiler, _native
from otel_asyncprof.export import ProfileExporter, ProfileExportResult

WARM_UP, CYCLES, RACES, RACERS = 50, 1000, 20, 4
GROWTH_KIB = 512  # in the second half: 1 KiB that stayed behind of each run


class Exporter(ProfileExporter):
    """Takes all."""

    def export(self, requests: Any) -> ProfileExportResult:
        return ProfileExportResult.SUCCESS


def what_there_is() -> dict[str, Any]:
    """All that a run might leave behind."""
    while len(os.listdir("/proc/self/task")) > 1:  # a thread that was joined is gone from there a little later
        time.sleep(0.01)
    with open("/proc/self/status", encoding="ascii") as status:
        handlers = [line for line in status if line.startswith(("SigCgt", "SigIgn", "SigBlk"))]
    return {
        "threads": threading.active_count(),
        "files": len(os.listdir("/proc/self/fd")),
        "handlers": handlers,
        "python handlers": [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)],
        "at exit": atexit._ncallbacks(),  # type: ignore[attr-defined]
        "context variables": len(contextvars.copy_context()),
        "runtime context": id(opentelemetry.context._RUNTIME_CONTEXT),
        "hooks": (sys.gettrace(), sys.getprofile(), sys.excepthook, threading.excepthook, threading._trace_hook),  # type: ignore[attr-defined]
        "active": profiler_module._active,
        "sampler": _native.is_running(),
        "timers": Path("/proc/self/timers").read_text(encoding="ascii"),
    }


class _MallocInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "free", "small", "mapped", "mapped_bytes", "unused", "small_free", "used", "rest", "top")
    ]


def held_kib() -> int:
    """What the C library has given out. Memory that is resident comes and goes as it sees fit."""
    gc.collect()
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _MallocInfo
    info = mallinfo2()
    return int(info.used + info.mapped_bytes) // 1024


def cycle(count: int) -> None:
    """By the same profiler and by new ones."""
    kept = Profiler(interval=3600, exporter=Exporter())
    for number in range(count):
        profiler = kept if number % 2 else Profiler(interval=3600, exporter=Exporter())
        assert profiler.start()
        assert profiler.is_running
        assert profiler.stop()


def race() -> None:
    """Threads start and stop the same profiler, others try theirs; whoever loses is told so."""
    shared, begin = Profiler(interval=3600, exporter=Exporter()), threading.Barrier(RACERS)

    def run() -> None:
        begin.wait()
        for number in range(RACES):
            profiler = shared if number % 2 else Profiler(interval=3600, exporter=Exporter())
            profiler.start()
            profiler.stop()

    racers = [threading.Thread(target=run) for _ in range(RACERS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert shared.stop()


def main() -> None:
    profiler_module._logger.disabled = True  # each refusal would be a line
    cycle(WARM_UP)
    before = what_there_is()
    race()
    cycle(CYCLES // 2)
    memory = held_kib()
    cycle(CYCLES // 2)
    growth = held_kib() - memory
    race()
    after = what_there_is()
    grown = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    print(grown, max(0, growth - GROWTH_KIB))


if __name__ == "__main__":
    main()
