"""Real crashes of the application, and of our own code, while the sampler faults: the process dies as without us."""

from __future__ import annotations

import platform
import time

import pytest
from stress.signal_programs import RunSteps, assert_crashed

LONGEST_DEATH_SECONDS = 2
MOST_CRASHES = 15  # on a loaded machine some take longer, with or without us

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs are written for Linux on x86-64")

CRASHES = {
    "main thread": ["crash()"],
    "another thread": ["in_thread(crash)"],
    "beside a sampler at rest": ["heal()", "crash()"],
    "after another signal": ["pass_a_signal_on()", "crash()"],
    "at the end of a stack": ["foreign.begin_stack_owner()", "foreign.end_stack_owner(2)"],
}


@pytest.mark.parametrize("way", CRASHES)
def test_a_crash_ends_the_process_within_two_seconds(run: RunSteps, way: str) -> None:
    """Whatever the sampler does just then; with faulthandler's traceback, once."""
    *before, crash = CRASHES[way]
    tell = "os.write(2, f'{time.monotonic()} s\\n'.encode())"
    for _ in range(MOST_CRASHES):
        status, errors = run("faulthandler.enable()", "begin_faults()", *before, tell, crash)
        seconds = time.monotonic() - float(errors.partition(" s\n")[0])
        assert_crashed((status, errors), tracebacks=1)
        if seconds < LONGEST_DEATH_SECONDS:
            return
    pytest.fail(f"none of {MOST_CRASHES} was that quick")


def test_alternate_stacks_of_other_threads_are_kept_and_used(run: RunSteps) -> None:
    """A thread's own stack for handlers is there after we have come and gone, and bears that of a stack overflow."""
    kept = ["foreign.begin_stack_owner()", "begin_faults(); heal(); stop()", "assert foreign.end_stack_owner(1) == 1"]
    assert run(*kept, "os._exit(0)") == (0, "")
    used = ["take(END, SA_ONSTACK)", "foreign.begin_stack_owner()", "begin_faults()", "foreign.end_stack_owner(2)"]
    assert_crashed(run(*used), tracebacks=0, foreign=1)


@pytest.mark.parametrize("enabled", [False, True])
def test_a_crash_of_our_own_thread_is_no_loop(run: RunSteps, enabled: bool) -> None:
    """A planted crash of the sampler's code is reported like any other."""
    steps = ["faulthandler.enable()"] * enabled + ["begin_faults()", "crash_sampler()"]
    assert_crashed(run(*steps), tracebacks=int(enabled))
