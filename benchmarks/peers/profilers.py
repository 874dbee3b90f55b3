"""The profilers that are compared: where each comes from, at which settings it runs, and how its stacks are counted."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import stacks

HERE = ""  # no environment of its own: that of this very run


@dataclass(frozen=True)
class Profiler:
    """One row of the results. Of the requirements, the first that installs and runs is taken."""

    name: str
    settings: str
    read: Callable[[Path, dict[str, Any]], Iterator[stacks.Seen]]
    counted: str
    environment: str = HERE
    requirements: tuple[str, ...] = ()
    check: tuple[str, ...] = ("python", "-c", "pass")  # fails where it cannot run
    baseline: str = "none"  # the run that it is compared with: the same tracer without the profiler
    with_opentelemetry: bool = True  # installs the API and the SDK of this run beside it
    is_default: bool = True

    @property
    def distribution(self) -> str:
        """Its name on PyPI."""
        return self.requirements[0].split("=")[0].split("<")[0] if self.requirements else ""


NO_LINKS = "stacks as delivered; the format has neither tasks nor spans"

PROFILERS = {
    profiler.name: profiler
    for profiler in (
        Profiler(
            "none", "no profiler; OpenTelemetry SDK without exporter, as for all but ddtrace", stacks.nothing, "nothing"
        ),
        Profiler(
            "ours",
            "otel_asyncprof at its defaults (100 Hz, 1 % of a core), to a file",
            stacks.otlp_of_ours,
            "looks by stats(); the share that is right by the time in its OTLP file, spans by function (40 kinds)",
        ),
        Profiler(
            "ddtrace-tracer",
            "ddtrace's tracer behind the OpenTelemetry API, all traces dropped, no profiler: ddtrace's baseline",
            stacks.nothing,
            "nothing",
            "ddtrace",
            ("ddtrace",),
            ("python", "-c", "import ddtrace.opentelemetry"),
            baseline="ddtrace-tracer",
        ),
        Profiler(
            "ddtrace",
            "stack collector alone at its defaults (10 to 100 ms, adaptive, 50 tasks, 64 frames), pprof to file, "
            "its 15 s before the fast copy set to 0",
            stacks.pprof_of_ddtrace,
            "samples of its pprof taken in the window; spans by task name, by function where tasks change",
            "ddtrace",
            ("ddtrace",),
            ("python", "-c", "import ddtrace.profiling, ddtrace.internal.datadog.profiling.stack as s; s.start"),
            baseline="ddtrace-tracer",
        ),
        Profiler(
            "pyroscope",
            "defaults: 100 Hz, on CPU, holding the GIL, pushed every 10 s to a local sink",
            stacks.pushes_of_pyroscope,
            f"samples of its pprof, from start to end; {NO_LINKS}",
            "pyroscope",
            ("pyroscope-io",),
            ("python", "-c", "import pyroscope"),
        ),
        Profiler(
            "py-spy",
            "record at its defaults (100 Hz, pausing the process, no idle threads), attached, raw format",
            stacks.lines_of_py_spy,
            f"counts of its raw file, from attaching to end; {NO_LINKS}",
            "py-spy",
            ("py-spy",),
            ("py-spy", "--version"),
        ),
        Profiler(
            "echion",
            "default interval of 1 ms, wall time, to a file",
            stacks.mojo_of_echion,
            "stacks of its stream written in the window; tasks by name, no spans",
            "echion",
            ("echion",),
            ("python", "-c", "import echion.core"),
        ),
        Profiler(
            "echion-100hz",
            "as echion, every 10 ms",
            stacks.mojo_of_echion,
            "as echion",
            "echion",
            ("echion",),
            ("python", "-c", "import echion.core"),
            is_default=False,
        ),
        Profiler(
            "austin",
            "default interval of 100 us, wall time, attached",
            stacks.lines_of_austin,
            f"lines of its file, from attaching to end; {NO_LINKS}",
            "austin",
            ("austin-dist", "austin-dist<4"),  # the wheel of 4.0 needs a newer C library than some systems have
            ("austin", "--version"),
        ),
        Profiler(
            "austin-100hz",
            "as austin, every 10 ms",
            stacks.lines_of_austin,
            "as austin",
            "austin",
            ("austin-dist", "austin-dist<4"),
            ("austin", "--version"),
            is_default=False,
        ),
        Profiler(
            "beacon",
            "beacon-profiling at its defaults (100 Hz, 64 frames, export every 60 s), OTLP to a local sink",
            stacks.otlp_of_beacon,
            "timestamps of its OTLP samples in the window; spans by function",
            "beacon",
            ("beacon-profiling",),
            ("python", "-c", "import opentelemetry.sdk.extension.profiling"),
            with_opentelemetry=False,  # it pins its own
        ),
    )
}


@dataclass(frozen=True)
class Program:
    """One program with its arguments."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    unit: str = "turns"
    quick: bool = False


def _waiting(tasks: int, loop: str) -> Program:
    arguments = ("--tasks", str(tasks), "--loop", loop)
    return Program(f"waiting-{tasks}-{loop}", "waiting_tasks", arguments, quick=tasks == 1000)


PROGRAMS = {
    program.name: program
    for program in (
        *(_waiting(tasks, loop) for tasks in (10, 100, 1_000, 10_000, 100_000) for loop in ("busy", "idle")),
        Program("web", "web_service", unit="requests", quick=True),
        Program("deep-coroutines", "deep_stacks", ("--shape", "coroutines")),
        Program("deep-frames", "deep_stacks", ("--shape", "frames")),
        Program("threads", "many_threads"),
        Program("churn", "churn", unit="tasks", quick=True),
    )
}
