"""Starts with little address space, or few descriptors, left, each in a child; prints what became of each."""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
from pathlib import Path

from counting import CountingExporter, profiler
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from stress.cycles import what_there_is

from otel_asyncprof.export import _thread_stack

CHILD_SECONDS, PAGE_KIB = 60, 4
SPACE_KIB = [0, 1, 64, 1 << 10, 16 << 10, 256 << 10]
DESCRIPTORS = [0, 1, 64]
lines: list[str] = []


class Lines(logging.Handler):
    """Keeps what was said."""

    def emit(self, record: logging.LogRecord) -> None:
        lines.append(record.getMessage())


def leave_space(kib: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE_KIB
    resource.setrlimit(resource.RLIMIT_AS, ((used + kib) << 10, resource.RLIM_INFINITY))


def leave_descriptors(count: int) -> None:
    used = len(os.listdir("/proc/self/fd")) - 1  # that of the listing itself
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + count, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def try_with(kind: str, amount: int, writable: int) -> None:
    """A start and a stop that find only so much."""
    signal.alarm(CHILD_SECONDS)
    before = what_there_is()
    limit = resource.RLIMIT_AS if kind == "space" else resource.RLIMIT_NOFILE
    whole = resource.getrlimit(limit)
    chosen = profiler(CountingExporter())
    (leave_space if kind == "space" else leave_descriptors)(amount)
    started = chosen.start()
    chosen.stop()
    resource.setrlimit(limit, whole)
    after = what_there_is()
    left = [name for name in before if before[name] != after[name]]
    os.write(writable, json.dumps({"started": started, "said": lines, "left": left}).encode())


def main() -> None:
    logging.getLogger("otel_asyncprof").addHandler(Lines())
    trace.set_tracer_provider(TracerProvider())  # which has its resource: to find one takes the SDK threads of its own
    _thread_stack.BEGIN_SECONDS = 0.5
    with profiler(CountingExporter()):  # has all imported that a start imports
        pass
    found = []
    for kind, amounts in {"space": SPACE_KIB, "descriptors": DESCRIPTORS}.items():
        for amount in amounts:
            readable, writable = os.pipe()
            pid = os.fork()
            if pid == 0:
                try_with(kind, amount, writable)
                os._exit(0)
            os.close(writable)
            with os.fdopen(readable) as pipe:
                said = pipe.read()
            status = os.waitpid(pid, 0)[1]
            found.append({"kind": kind, "amount": amount, "status": status, **json.loads(said or "{}")})
    print(json.dumps({"found": found}))


main()
