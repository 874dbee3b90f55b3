"""A program does the same with the profiler as without it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration.applications import PROGRAMS

TIMEOUT_SECONDS = 240
MAX_ATTEMPTS = 4  # tests of the standard library fail now and then on a busy machine, with the profiler or without
LEAST_TESTS = 200
ASYNCIO = ["context", "eager_task_factory", "futures2", "locks", "pep492", "queues", "runners", "staggered"]
ASYNCIO += ["taskgroups", "tasks.CTask_CFuture_Tests", "threads", "timeouts"]
STANDARD_LIBRARY = {
    1000: [f"test.test_asyncio.test_{name}" for name in ASYNCIO],
    100: [
        f"test.test_{name}"
        for name in ("asyncgen", "context", "contextlib_async", "monitoring", "sys_setprofile", "threading_local")
    ],
}

UNDER = {
    "default": {},
    "development mode, warnings are errors": {"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"},
    "debugging": {"PYTHONASYNCIODEBUG": "1", "PYTHONTRACEMALLOC": "1", "PYTHONFAULTHANDLER": "1"},
}


def run_beside(
    rate: int, folder: Path, program: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
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


def is_there(name: str) -> bool:
    """Whether this version of CPython has the module."""
    module = name.removesuffix(".CTask_CFuture_Tests")
    return importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("rate", STANDARD_LIBRARY)
def test_tests_of_the_standard_library_end_alike(rate: int, tmp_path: Path) -> None:
    """In turns without and with the profiler; a difference is one that is there at every attempt."""
    if importlib.util.find_spec("test.test_asyncio") is None:
        pytest.skip("this distribution of CPython ships no tests of the standard library")
    names = list(filter(is_there, STANDARD_LIBRARY[rate]))
    for attempt in range(MAX_ATTEMPTS):
        without, beside = outcomes(0, tmp_path, names), outcomes(rate, tmp_path, names)
        assert attempt > 0 or len(without) >= LEAST_TESTS
        different = {name: (without.get(name), beside.get(name)) for name in without.keys() | beside.keys()}
        different = {name: (one, other) for name, (one, other) in different.items() if one != other}
        if not different:
            return
        names = sorted({re.sub(r" [\[(].*", "", name) for name in different} - {"environment altered"}) or names
    assert different == {}


# A witness


@pytest.mark.parametrize("under", UNDER)
def test_a_witness_reports_the_same(under: str, tmp_path: Path) -> None:
    """Of tasks, contexts, tracebacks, tracing, lifetimes and chance, and what the interpreter complains of."""
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
