"""Ways in which an interpreter may run code that change nothing in what its readers see."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading, time
from otel_asyncprof.testing import capture

def inner(end):
    while time.monotonic() < end:
        pass

def outer():
    inner(time.monotonic() + 0.5)

def beside():
    {beside}

other = threading.Thread(target=beside, name="beside")
with capture(rate=200) as profile:
    other.start()
    outer()
    other.join()
main = [s for s in profile.samples if s.thread_name == "MainThread" and s.frames[-1].function in ("inner", "outer")]
assert {{tuple(frame.function for frame in s.frames) for s in main}} >= {{("<module>", "outer", "inner")}}
assert sum(s.wall_ns for s in main) > 0.4e9, sum(s.wall_ns for s in main)
functions = {{frame.function for s in profile.samples for frame in s.frames}}
assert not functions & {{"<unreadable>", "<truncated>", "hidden"}}, functions
assert "beside" in functions, functions
"""
HIDDEN = """
def hidden(end):
    while time.monotonic() < end:
        pass
import time
hidden(time.monotonic() + 0.4)
"""
SUBINTERPRETERS = {11: "_xxsubinterpreters", 12: "_xxsubinterpreters"}.get(sys.version_info.minor, "_interpreters")
RUN = "exec" if sys.version_info >= (3, 13) else "run_string"


def run(*options: str, beside: str) -> None:
    """The program must find its own stacks."""
    code = PROGRAM.format(beside=beside)
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def other_interpreters_work() -> bool:
    """Their module is there, and can be loaded."""
    try:
        __import__(SUBINTERPRETERS)
    except ImportError:
        return False
    return True


@pytest.mark.skipif(not other_interpreters_work(), reason="this build has no module for other interpreters")
def test_a_thread_in_another_interpreter_shows_what_it_does_in_ours() -> None:
    """The function that runs the other interpreter, and nothing of what runs inside."""
    code = f"import {SUBINTERPRETERS} as i; i.{RUN}(i.create(), {HIDDEN!r})"
    run("-W", "ignore", beside=code)


@pytest.mark.skipif(
    not hasattr(sys, "activate_stack_trampoline"), reason="the trampoline for perf came with CPython 3.12"
)
def test_under_the_trampoline_for_perf_stacks_are_the_same() -> None:
    """Between two Python frames stands one more C frame, of which the interpreter's own know nothing."""
    try:
        sys.activate_stack_trampoline("perf")
        sys.deactivate_stack_trampoline()
    except ValueError:
        pytest.skip("this build has no trampoline for perf")
    run("-X", "perf", beside="inner(time.monotonic() + 0.3)")


def test_under_a_tracing_function_stacks_are_the_same() -> None:
    """Instructions are then instrumented ones."""
    code = "sys.settrace(lambda *_: None); inner(time.monotonic() + 0.3)"
    run(beside=code)
