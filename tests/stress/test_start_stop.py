"""Starts and stops: a thousand of them, in races, and with signals at every line; nothing stays behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from integration.applications import environment

HERE = Path(__file__).parent
PATIENCE = 240.0


def run(program: str, *arguments: str) -> str:
    """The output of a program."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env=environment(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_thousand_starts_and_stops_leave_nothing_behind() -> None:
    """No thread, file, handler, hook, timer, context variable or memory."""
    assert run("cycles.py") == "{} 0\n"


@pytest.mark.parametrize(("action", "step"), [("raise", 1), ("stop", 3), ("shutdown", 3)])
def test_a_signal_handler_may_come_at_any_line(action: str, step: int) -> None:
    """It raises, as that of SIGINT does, or stops the profiler: the next stop does the rest, and others can start."""
    assert run("interrupted.py", action, str(step)) == "nothing is left behind\n"


def test_a_process_dies_by_a_signal_at_any_moment_of_a_start_or_a_stop() -> None:
    """By that very signal, each of many processes at another moment."""
    assert run("killed.py") == "all died by it\n"


FLUSHED_FIRST = """
from otel_asyncprof import Profiler
from otel_asyncprof.export.in_memory import InMemoryProfileExporter
profiler = Profiler(exporter=InMemoryProfileExporter())
start_sampler = profiler._start_sampler
profiler._start_sampler = lambda: (profiler.force_flush(), start_sampler())
profiler.start_or_raise()
assert profiler.shutdown()
"""


def test_an_export_before_the_sampler_runs_says_nothing_of_how_it_reads() -> None:
    """A short interval on a loaded machine, or a flush by another thread."""
    done = subprocess.run([sys.executable, "-c", FLUSHED_FIRST], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
