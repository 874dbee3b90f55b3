"""A program does the same with the profiler as without it: tests of the standard library, a witness, and what is rebound."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration.applications import PROGRAMS

TIMEOUT_SECONDS = 240
RATES = (100, 1000)
MAX_ATTEMPTS = 4  # tests of the standard library fail now and then on a busy machine, with the profiler or without

QUICK = ("test_context", "test_futures2", "test_locks", "test_pep492", "test_queues", "test_runners", "test_threads")
ASYNCIO = (*QUICK, "test_taskgroups", "test_timeouts", "test_eager_task_factory", "test_staggered")
STANDARD_LIBRARY = [f"test.test_asyncio.{name}" for name in ASYNCIO]
STANDARD_LIBRARY += ["test.test_context", "test.test_asyncgen", "test.test_contextlib_async", "test.test_threading_local"]
STANDARD_LIBRARY += ["test.test_sys_setprofile", "test.test_sys_settrace", "test.test_monitoring"]
TASKS = ["test.test_asyncio.test_tasks.CTaskSubclass_PyFuture_Tests", "test.test_asyncio.test_tasks.CTask_CFuture_Tests"]

UNDER = {
    "default": {},
    "development mode, warnings are errors": {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"},
    "debugging": {"PYTHONASYNCIODEBUG": "1", "PYTHONTRACEMALLOC": "5", "PYTHONFAULTHANDLER": "1"},
}


def run_beside(rate: int, folder: Path, program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end beside a profiler of that rate, 0 for none; it has been looked at, or not at all."""
    ticks = folder / "ticks"
    ended = subprocess.run(
        [sys.executable, str(PROGRAMS / "beside_the_profiler.py"), str(rate), str(ticks), program, *arguments],
        env={name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))} | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (int(ticks.read_text()) > 0) == (rate > 0)
    return ended


# The standard library's own tests


def outcomes(rate: int, folder: Path, names: list[str]) -> dict[str, str]:
    """What became of each of these tests."""
    file = folder / "outcomes.json"
    run_beside(rate, folder, str(PROGRAMS / "standard_library.py"), str(file), *names)
    seen: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return seen


def test_tests_of_the_standard_library_end_alike(tmp_path: Path) -> None:
    """In turns without and with the profiler at both rates; a difference is one that is there in every attempt."""
    if importlib.util.find_spec("test.test_asyncio") is None:
        pytest.skip("this distribution of CPython ships no tests of the standard library")
    names = [name for name in STANDARD_LIBRARY if importlib.util.find_spec(name) is not None] + TASKS
    for attempt in range(MAX_ATTEMPTS):
        without = outcomes(0, tmp_path, names)
        assert attempt > 0 or len(without) >= 900
        different = {
            test: (outcome, seen.get(test, "not run"))
            for seen in (outcomes(rate, tmp_path, names) for rate in RATES)
            for test, outcome in (dict.fromkeys(seen, "not run") | without).items()
            if outcome != seen.get(test, "not run")
        }
        if not different:
            return
        names = sorted({re.sub(r" [\[(].*", "", test) for test in different} - {"environment altered"}) or names
    assert different == {}


# A witness


@pytest.mark.parametrize("under", UNDER)
def test_a_witness_reports_the_same(under: str, tmp_path: Path) -> None:
    """Tasks, contexts, tracebacks, tracing, lifetimes, chance; and the interpreter says the same on the standard error."""
    without, beside = (run_beside(rate, tmp_path, str(PROGRAMS / "witness.py"), **UNDER[under]) for rate in (0, 1000))
    assert json.loads(beside.stdout) == json.loads(without.stdout)
    addresses = re.compile("0x[0-9a-f]+")
    assert addresses.sub("", beside.stderr) == addresses.sub("", without.stderr)


# What is rebound


@pytest.fixture(scope="module")
def identities() -> dict[str, list[str]]:
    """What identities.py has found."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    ended = subprocess.run(
        [sys.executable, str(PROGRAMS / "identities.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    found: dict[str, list[str]] = json.loads(ended.stdout)
    return found


def test_one_attribute_is_rebound_while_the_profiler_runs(identities: dict[str, list[str]]) -> None:
    """Of all modules that are loaded and their classes; beside it there is one more Python thread."""
    assert identities["rebound while it runs"] == ["opentelemetry.context._RUNTIME_CONTEXT"]
    assert identities["changed while it runs"] == ["threads"]


def test_nothing_is_rebound_after_uninstrument(identities: dict[str, list[str]]) -> None:
    """Every attribute is the very object that it was."""
    assert identities["rebound after it"] == []
    assert identities["changed after it"] == []
