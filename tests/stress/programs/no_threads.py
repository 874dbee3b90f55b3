"""The system gives no thread: to the application, to the export, to the sampler, and in the child of a fork."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading

from counting import CountingExporter, let_threads_start, profiler, ticks, wait_for
from stress.cycles import what_there_is

CHILD_SECONDS = 60
MOST_THREADS = 4  # of a start: for the resource, the export and the sampler
lines: list[str] = []


class Lines(logging.Handler):
    """Keeps what was said."""

    def emit(self, record: logging.LogRecord) -> None:
        lines.append(record.getMessage())


def application_thread() -> bool:
    """Whether the application gets a thread of its own."""
    thread = threading.Thread(target=str)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def start_with(count: int) -> dict[str, object]:
    """A start that gets so many threads: what it said, and what it has left behind."""
    chosen, before = profiler(CountingExporter()), what_there_is()
    lines.clear()
    let_threads_start(count)
    started = chosen.start()
    let_threads_start()
    if started:
        chosen.shutdown()
    after = what_there_is()
    return {"started": started, "said": lines[:], "left": [name for name in before if before[name] != after[name]]}


def start_again() -> bool:
    """Whether a start works, and looks."""
    exporter = CountingExporter()
    chosen = profiler(exporter)
    chosen.start_or_raise()
    wait_for(lambda: ticks() > 3)
    return chosen.shutdown() and exporter.intervals > 0


def fork_without_threads() -> dict[str, object]:
    """A child that gets none ends as it wants to; the parent goes on."""
    exporter = CountingExporter()
    chosen = profiler(exporter)
    chosen.start_or_raise()
    lines.clear()
    let_threads_start(0)
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(CHILD_SECONDS)
        os.write(writable, json.dumps(lines).encode())
        sys.exit(0 if not chosen.is_running and not application_thread() else 1)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        said = json.load(pipe)
    status = os.waitpid(pid, 0)[1]
    let_threads_start()
    seen = ticks()
    wait_for(lambda: ticks() > seen)
    return {"status": status, "said": said, "complete": chosen.shutdown()}


def main() -> None:
    logging.getLogger("otel_asyncprof").addHandler(Lines())
    assert start_again()
    starts = [start_with(count) | {"again": start_again()} for count in range(MOST_THREADS)]
    report: dict[str, object] = {"starts": starts}
    let_threads_start(0)
    refused = not application_thread()
    let_threads_start()
    report["application"] = {"refused": refused, "again": start_again()}
    report["fork"] = fork_without_threads()
    print(json.dumps(report))


main()
