"""The system gives no thread (RLIMIT_NPROC, a cgroup): the profiler says so in one line, the application goes on."""

from __future__ import annotations

from typing import Any

import pytest
from stress.interposed import run_program

REFUSED = "otel_asyncprof does not profile this process: RuntimeError: "
REASONS = ["can't start new thread", "its thread could not be made"]  # of Python's, and of the sampler's


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """A program that is refused threads, one thread later each time."""
    found: dict[str, Any] = run_program("no_threads.py")
    return found


def test_a_start_without_threads_is_refused_and_leaves_nothing(report: dict[str, Any]) -> None:
    """Neither a thread nor a handler of a signal; when there are threads again, it starts."""
    assert [start["left"] for start in report["starts"]] == [[]] * len(report["starts"])
    assert all(start["again"] for start in report["starts"])
    refused = [start["said"] for start in report["starts"] if not start["started"]]
    assert [refused[0], refused[-1]] == [[REFUSED + reason] for reason in REASONS]
    assert [start["said"] for start in report["starts"] if start["started"]] in ([[]], [[], []])


def test_a_thread_that_the_application_could_not_start_is_no_hindrance(report: dict[str, Any]) -> None:
    """3.11 keeps the state of one in its list, with the ids of the thread that wanted it."""
    assert report["application"] == {"refused": True, "again": True}


def test_a_forked_child_without_threads_goes_on_unprofiled(report: dict[str, Any]) -> None:
    """One line says why; the parent is profiled all the time."""
    assert report["fork"] == {
        "status": 0,
        "complete": True,
        "said": ["otel_asyncprof does not profile this child process: RuntimeError: can't start new thread"],
    }
