"""One run of a program under one profiler: its options, its order of events, and the one JSON line that it prints."""

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from programs.agents import AGENTS
from programs.meter import Lateness, Meter

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from opentelemetry.trace import Span

KINDS = 20  # of requests, each with functions of its own
WORK_STEPS = 400


class Run:
    """What a program is given: spans, the window of time, and where to note what is true.

    OpenTelemetry is imported after the profiler has started, as under every automatic instrumentation.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.seconds: float = options.seconds
        self.warmup: float = options.warmup
        self.units = 0  # of work done, which a program counts up
        self.count_units: Callable[[], int] = lambda: self.units  # the run takes the difference over the window
        self.extra: dict[str, object] = {}
        self.threads: list[threading.Thread] = []
        self.parents: dict[str, str] = {}  # function of a leaf -> function that must be next below it
        self.tops: dict[str, str] = {}  # function of a leaf -> function that must be above it
        self.leaf_share: float | None = None  # of all tasks
        self._spans: dict[int, str] = {}
        self._tasks: dict[str, int] = {}
        self._directory = Path(options.directory).resolve()
        self._agent = AGENTS[options.profiler](self._directory, options.sink)
        self._agent.start()
        self._lateness = Lateness()
        from opentelemetry import trace

        self._tracer = trace.get_tracer("benchmark")
        self._current_span = trace.get_current_span
        self._client, self._server = trace.SpanKind.CLIENT, trace.SpanKind.SERVER

    def request_span(self) -> "AbstractContextManager[Span]":
        """A request's span, current in the block."""
        return self._tracer.start_as_current_span("GET", kind=self._server)

    def query_span(self) -> "AbstractContextManager[Span]":
        """A query's span, current in the block."""
        return self._tracer.start_as_current_span("SELECT", kind=self._client)

    def note_leaf(self, function: str, parent: str, top: str | None = None) -> None:
        """A stack with this function is right when the parent is next below it and the top somewhere above it."""
        self.parents[function] = parent
        if top:
            self.tops[function] = top

    def note_span(self, span: "Span", function: str) -> None:
        """Samples of the function belong to this span."""
        self._spans[span.get_span_context().span_id] = function

    def note_task(self) -> None:
        """Samples of this task belong to the span that is current in it: for formats that name tasks."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task.get_name()] = self._current_span().get_span_context().span_id

    async def measure(self) -> None:
        """To be awaited when everything stands: warm-up, then the window, while the program's other tasks run."""
        self._agent.ready()
        await asyncio.sleep(self.warmup)
        probe = asyncio.create_task(self._lateness.probe())
        self._agent.mark()
        meter = Meter(self._agent.sampler_pid)
        meter.own(self.threads)
        units = self.count_units()
        self.window_begun = time.monotonic()
        meter.begin()
        await asyncio.sleep(self.seconds)
        self.figures: dict[str, object] = {**meter.end()}
        self.window_ended = time.monotonic()
        self.figures["units"] = self.count_units() - units
        probe.cancel()

    def finish(self) -> None:
        """Ends the profiler and the process, without the time that ending all the tasks would take."""
        self.figures |= self._lateness.figures() | self.extra
        cpu = time.process_time()
        self.figures["profile"] = self._agent.stop()
        self.figures["last_export_cpu"] = time.process_time() - cpu
        truth = {
            "parents": self.parents,
            "tops": self.tops,
            "leaf_share": self.leaf_share,
            "spans": {f"{span_id:016x}": function for span_id, function in self._spans.items()},
            "tasks": {task: f"{span_id:016x}" for task, span_id in self._tasks.items()},
        }
        (self._directory / "truth.json").write_text(json.dumps(truth))
        print(json.dumps(self.figures), flush=True)
        os._exit(0)


def main(program: Callable[[Run], Awaitable[None]], *arguments: tuple[str, dict[str, Any]]) -> None:
    """Runs a program as the command line says: first the profiler, as in a service, then the loop."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--profiler", choices=sorted(AGENTS), default="none")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--directory", default=".", help="where profiles and truth.json go")
    parser.add_argument("--sink", default="", help="URL that takes what a profiler sends")
    for name, settings in arguments:
        parser.add_argument(name, **settings)
    run = Run(parser.parse_args())

    async def run_and_leave() -> None:
        await program(run)
        run.finish()

    asyncio.run(run_and_leave())


def kinds(function: Callable[..., Any]) -> list[Any]:
    """The function once for each kind of request, with a code object and a name of its own: name_0, name_1 …"""
    assert isinstance(function, FunctionType)
    copies = []
    for kind in range(KINDS):
        name = f"{function.__name__}_{kind}"
        code = function.__code__.replace(co_name=name, co_qualname=name)
        copies.append(FunctionType(code, function.__globals__, name, function.__defaults__))
    return copies


def work(steps: int = WORK_STEPS) -> int:
    """A fixed amount of pure Python work, by default some 20 us."""
    total = 0
    for step in range(steps):
        total += step * step & 0xFF
    return total


async def busy(run: Run) -> None:
    """Short turns of work that let others run in between, for ever: one unit each."""
    while True:
        work()
        run.units += 1
        await asyncio.sleep(0)
