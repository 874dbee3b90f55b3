"""What tests/native/interposed.c counts, as the program itself sees it."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from otel_asyncprof import Profiler, ProfilerConfig, _native
from otel_asyncprof.export import ProfileExporter, ProfileExportResult

LIBRARY = ctypes.CDLL(os.environ["LD_PRELOAD"])
MAX_PATHS, PATH_BYTES = 64, 128
NEVER = (1 << 64) - 1
WAIT_SECONDS = 120.0


def counter(name: str) -> int:
    """The value of a 64-bit counter."""
    return ctypes.c_int64.in_dll(LIBRARY, name).value


def fail_allocations(first: int, count: int = 1 << 62) -> None:
    """Lets so many of the extension's allocations fail, from the first-th that it makes from now on."""
    ctypes.c_uint64.in_dll(LIBRARY, "fail_from").value = NEVER
    ctypes.c_uint64.in_dll(LIBRARY, "fail_count").value = count
    ctypes.c_uint64.in_dll(LIBRARY, "fail_from").value = counter("code_allocations") + first


def let_allocations_succeed() -> None:
    """Ends fail_allocations()."""
    ctypes.c_uint64.in_dll(LIBRARY, "fail_from").value = NEVER


def hide_files() -> None:
    """From now on the extension finds no file."""
    ctypes.c_bool.in_dll(LIBRARY, "hide_files").value = True


def let_threads_start(count: int = NEVER) -> None:
    """Lets so many threads be made from now on, and no more."""
    ctypes.c_uint64.in_dll(LIBRARY, "threads_left").value = count


def watch_extension() -> None:
    """Counts what the extension holds, from before its first allocation on."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    bounds = [line[0].split("-") for line in lines if line[-1] == _native.__file__]
    assert bounds
    ctypes.c_size_t.in_dll(LIBRARY, "code_begin").value = min(int(begin, 16) for begin, _ in bounds)
    ctypes.c_size_t.in_dll(LIBRARY, "code_end").value = max(int(end, 16) for _, end in bounds)


def sampler_thread() -> int:
    """The kernel's id of the sampler thread."""
    for path in Path("/proc/self/task").iterdir():
        if (path / "comm").read_text().strip() == "otel_asyncprof":
            return int(path.name)
    raise AssertionError("there is no sampler thread")


def watch_sampler() -> None:
    """Counts what the sampler thread allocates and opens."""
    wait_for(lambda: ticks() > 0)
    ctypes.c_uint32.in_dll(LIBRARY, "watched_thread").value = sampler_thread()


def opened_paths() -> list[str]:
    """The files that the sampler thread has opened, the last 64 of them."""
    paths = (ctypes.c_char * PATH_BYTES * MAX_PATHS).in_dll(LIBRARY, "thread_paths")
    return [path.value.decode() for path in paths if path.value]


def ticks() -> int:
    """How many looks there were."""
    return _native.stats()["ticks"]


def drops(reason: str) -> int:
    """How often something was lost for this reason."""
    return _native.stats()["drops"][reason]


def wait_for(condition: object) -> None:
    """Until a condition holds; an error when it never does."""
    assert callable(condition)
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, f"never came: {condition}"
        time.sleep(0.002)


class CountingExporter(ProfileExporter):
    """Keeps nothing but how much there was."""

    def __init__(self) -> None:
        self.intervals = 0
        self.bytes = 0
        self.overflows = 0

    def export(self, requests: object) -> ProfileExportResult:
        assert isinstance(requests, list)
        self.intervals += 1
        self.bytes += sum(map(len, requests))
        self.overflows += sum(b"<overflow>" in request for request in requests)
        return ProfileExportResult.SUCCESS


def profiler(exporter: ProfileExporter, **options: object) -> Profiler:
    """Looks as often, and at as much, as a program can be looked at."""
    chosen: dict[str, object] = {
        "rate": 1000,
        "cpu_budget": 1.0,
        "interval": 0.25,
        "sample_attributes": (
            "thread.name",
            "asyncprof.state",
            "thread.id",
            "asyncio.task.name",
            "asyncprof.local_root.name",
        ),
    }
    return Profiler(ProfilerConfig(**{**chosen, **options}), exporter=exporter)  # type: ignore[arg-type]
