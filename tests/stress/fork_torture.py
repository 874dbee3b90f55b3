"""Forks while everything goes on that a fork may come in the middle of, and looks at what each process has delivered.

PYTHONPATH=tests python -m stress.fork_torture --forks 10000 --protocol http
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from integration.applications import environment
from integration.collectors import COLLECTORS
from integration.streams import Streams
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from otel_asyncprof import Profiler, _native

TASKS = 1000
QUICK_TASKS = 100  # of those; the others wait all the time
CHURNING_THREADS = 2
ALIVE_AT_ONCE = 4
ALARM_SECONDS = 60
TICKS_OF_A_LIFE = 20
EVERY_FORK_THAT_LIVES = 16

tracer = trace.get_tracer("torture")


# The application. No function of the parent is called in a child, and the other way round.


class SpansBetweenForks(OTLPSpanExporter):
    """Has forks wait for it: a child of one in its midst can hang at exit, in urllib3, with or without a profiler."""

    def __init__(self) -> None:
        super().__init__()
        self._forks = threading.Lock()
        os.register_at_fork(
            before=self._forks.acquire, after_in_parent=self._forks.release, after_in_child=self._forks.release
        )

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """As always, but for the forks."""
        with self._forks:
            return super().export(spans)


async def marker() -> None:
    await asyncio.Event().wait()


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


async def wait_often() -> None:
    while True:
        with tracer.start_as_current_span("task"):
            await asyncio.sleep(0.05)


async def many_tasks(ready: threading.Event) -> None:
    tasks = [asyncio.create_task(wait_often()) for _ in range(QUICK_TASKS)]
    tasks += [asyncio.create_task(wait_for_ever()) for _ in range(TASKS - QUICK_TASKS)]
    tasks.append(asyncio.create_task(marker()))
    asyncio.get_running_loop().call_soon(ready.set)
    await asyncio.gather(*tasks)


def churn_spans(stopped: threading.Event) -> None:
    while not stopped.wait(0.0005):
        with tracer.start_as_current_span("outer"), tracer.start_as_current_span("inner"):
            pass


async def await_a_little() -> None:
    with tracer.start_as_current_span("child"):
        await asyncio.sleep(0.01)


def end_at_once() -> None:
    pass


def allocate() -> None:
    kept = [[number] for number in range(20_000)]
    gc.collect()
    assert len(kept) == 20_000


def run_a_loop() -> None:
    asyncio.run(await_a_little())


def fork_again() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def live() -> None:
    begin = _native.stats()["ticks"]
    while _native.stats()["ticks"] < begin + TICKS_OF_A_LIFE:
        with tracer.start_as_current_span("life"):
            pass


SHORT_LIVES = (end_at_once, end_at_once, allocate, end_at_once, run_a_loop, end_at_once, fork_again)


def fork(life: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ALARM_SECONDS)
    status = 1
    try:
        life()
        status = 0
    finally:
        if life is not live or status:
            os._exit(status)
    sys.exit(0)


async def fork_in_a_coroutine(life: Callable[[], None]) -> int:
    return fork(life)


def fork_somewhere(number: int, thread: ThreadPoolExecutor, loop: asyncio.AbstractEventLoop) -> tuple[int, bool]:
    """The child, and whether it lives and says so; a child of another thread than the main one cannot end as usual."""
    if number % EVERY_FORK_THAT_LIVES == 0:
        return fork(live), True
    life = SHORT_LIVES[number % len(SHORT_LIVES)]
    if life is run_a_loop and sys.version_info >= (3, 14):
        number -= number % 3  # forked in a task, 3.14 keeps that as the running one, and lets no loop run there
    match number % 3:
        case 0:
            return fork(life), False
        case 1:
            return thread.submit(fork, life).result(), False
        case _:
            return asyncio.run_coroutine_threadsafe(fork_in_a_coroutine(life), loop).result(), False


def application(forks: int) -> None:
    """Prints what the parent has seen as one JSON object."""
    protocol = os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"]
    provider = TracerProvider()
    if protocol == "http/protobuf":  # gRPC, in a call of OpenTelemetry's own exporter, does not survive a fork
        provider.add_span_processor(BatchSpanProcessor(SpansBetweenForks(), schedule_delay_millis=300))
    trace.set_tracer_provider(provider)
    loop, ready, stopped = asyncio.new_event_loop(), threading.Event(), threading.Event()
    task = loop.create_task(many_tasks(ready))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    ready.wait()
    for _ in range(CHURNING_THREADS):
        threading.Thread(target=churn_spans, args=(stopped,), daemon=True).start()
    statuses: Counter[int] = Counter()
    lives, alive = [], deque[int]()
    profiler = Profiler(rate=1000, interval=0.2, cpu_budget=1.0)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(end_at_once).result()
        profiler.start_or_raise()
        begin = time.monotonic()
        threads = len(os.listdir("/proc/self/task"))
        for number in range(forks):
            pid, lives_on = fork_somewhere(number, thread, loop)
            alive.append(pid)
            lives += [pid] if lives_on else []
            while len(alive) > (0 if number == forks - 1 else ALIVE_AT_ONCE):
                statuses[os.waitstatus_to_exitcode(os.waitpid(alive.popleft(), 0)[1])] += 1
        new_threads = len(os.listdir("/proc/self/task")) - threads
        flushed = profiler.force_flush()
        seconds = time.monotonic() - begin
        status = profiler.status()
    stopped.set()
    complete = profiler.shutdown(30_000)
    loop.call_soon_threadsafe(task.cancel)
    print(
        json.dumps(
            {
                "pid": os.getpid(),
                "statuses": dict(statuses),
                "lives": lives,
                "seconds": seconds,
                "new_threads": new_threads,
                "went_on": [status.running, flushed, complete],
                "failed_intervals": status.failed_intervals,
                "exported_intervals": status.exported_intervals,
            }
        )
    )


# Those who look at it.

OF_PARENT = {"many_tasks", "wait_for_ever", "wait_often", "marker", "churn_spans"}
OF_CHILD = {"live", "await_a_little", "allocate", "run_a_loop", "fork_again", "end_at_once"}


@dataclass
class Outcome:
    """What the parent said and what was delivered."""

    said: dict[str, object]
    streams: Streams
    stderr: str

    @property
    def parent(self) -> int:
        """Its process id."""
        return int(str(self.said["pid"]))

    @property
    def lives(self) -> set[int]:
        """The children that ended as programs do."""
        lives = self.said["lives"]
        assert isinstance(lives, list)
        return set(lives)

    def silent(self) -> set[int]:
        """The children that lived and did not say so."""
        return {pid for pid in self.lives if "live" not in self.streams.functions(pid)}

    def strays(self) -> dict[int, set[str]]:
        """Who has seen what only others can do."""
        children = self.streams.pids - {self.parent}
        found = {pid: self.streams.functions(pid) & OF_PARENT for pid in children}
        found[self.parent] = self.streams.functions(self.parent) & OF_CHILD
        return {pid: functions for pid, functions in found.items() if functions}

    def marker_seconds(self) -> float:
        """How long the parent's profiles say that a task waited which waited all the time."""
        samples = self.streams.samples(self.parent)
        return sum(sample.wall_ns for sample in samples if "marker" in sample.functions) / 1e9


def torture(forks: int, protocol: str, seconds: float) -> Outcome:
    """Runs the application under a collector; it has so many seconds."""
    with COLLECTORS[protocol]() as collector:
        variables = {"OTEL_EXPERIMENTAL_RESOURCE_DETECTORS": "process,service_instance,otel"}
        python = [sys.executable, "-W", "ignore::DeprecationWarning"]  # since 3.12 each fork beside threads gives one
        ended = subprocess.run(
            [*python, "-m", "stress.fork_torture", "--application", "--forks", str(forks)],
            env=environment(collector, **variables) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=True,
        )
        return Outcome(json.loads(ended.stdout), Streams(collector.profiles), ended.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forks", type=int, default=10_000)
    parser.add_argument("--protocol", choices=COLLECTORS, default="http")
    parser.add_argument("--application", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.application:
        application(options.forks)
        return
    outcome = torture(options.forks, options.protocol, 3600)
    print(outcome.said | {"lives": len(outcome.lives)})
    print(f"marker: {outcome.marker_seconds():.1f} s; silent: {outcome.silent()}; strays: {outcome.strays()}")
    print(outcome.stderr[-2000:], end="")


if __name__ == "__main__":
    main()
