"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration.command_line import TIMEOUT_SECONDS, environment

from otel_asyncprof.analysis.findings import Findings
from otel_asyncprof.formats.recording import read_recording

TESTS = """
import asyncio, time

async def sleep_in_the_loop():
    time.sleep(1.2)

async def hold():
    await asyncio.gather(sleep_in_the_loop(), asyncio.sleep(0.01))

def test_that_holds_the_loop():
    asyncio.run(hold())

def test_that_waits():
    asyncio.run(asyncio.sleep(0.8))

def test_without_a_loop():
    time.sleep(0.8)

def test_that_fails_by_itself():
    asyncio.run(hold())
    assert False, "its own reason"
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A pytest that knows nothing of this one."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment(), timeout=TIMEOUT_SECONDS, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with tests."""
    (tmp_path / "test_it.py").write_text(TESTS)
    return tmp_path


def test_a_test_fails_whose_task_holds_the_loop_too_long_and_no_other(folder: Path) -> None:
    """It is told where; waiting is no holding, and without a loop there is none to hold. The report is written."""
    done = run_pytest(folder, "--asyncprof-max-block=300ms", "--asyncprof-report=r.html", "test_it.py")
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    (held,) = re.findall(r"^_+ test_that_holds_the_loop _+\n(.*?)^_", done.stdout, re.MULTILINE | re.DOTALL)
    first, *stack = held.strip().splitlines()
    pattern = r"Task-\d+ held the event loop for at least [\d.]+ m?s \(300 ms are allowed\), at last in"
    assert re.fullmatch(pattern, first)
    assert stack[-1].endswith("test_it.py:5 sleep_in_the_loop")
    assert not any("site-packages" in line for line in stack)
    assert "its own reason" in done.stdout
    assert "report: r.html" in done.stdout
    assert (folder / "r.html").read_text().startswith("<!doctype html>")


def test_workers_are_profiled_and_their_recordings_joined(folder: Path) -> None:
    """With pytest-xdist, one report of all."""
    options = ("--asyncprof", "--asyncprof-report=r.jsonl", "-k", "waits or without")
    done = run_pytest(folder, "-n", "2", *options, "test_it.py")
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    found = Findings.of(read_recording((folder / "r.jsonl").read_bytes()))
    functions = {name for sample in found.samples for name in sample.functions}
    assert {"test_that_waits", "test_without_a_loop"} <= functions
    assert len({process.pid for process in found.processes}) == 2


def test_where_no_test_runs_the_summary_says_so(folder: Path) -> None:
    """Nothing was seen, which is no list of states."""
    done = run_pytest(folder, "--asyncprof", "-k", "nothing", "test_it.py")
    assert "\n0 samples, 0 spans, CPU 0 ns\n" in done.stdout


def test_without_its_options_the_plugin_does_nothing(folder: Path) -> None:
    """It imports neither asyncio nor the SDK."""
    (folder / "conftest.py").write_text(
        "import sys\ndef pytest_sessionfinish():\n"
        "    print('LOADED', sorted(n for n in sys.modules if n.startswith(('otel_asyncprof', 'opentelemetry'))))\n"
    )
    done = run_pytest(folder, "-s", "-k", "nothing", "test_it.py")
    loaded = next(line for line in done.stdout.splitlines() if "LOADED" in line)
    assert "opentelemetry" not in loaded
    assert "otel_asyncprof._" not in loaded.replace("otel_asyncprof._version", "")
    assert "asyncprof" not in done.stdout.replace(loaded, "")


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--asyncprof-max-block=soon", "--asyncprof-max-block: 'soon' is no time (30, 500ms, 10s, 5m, 1h)"),
        ("--asyncprof-report=r.svg", "--asyncprof-report: the suffix of r.svg names no format: use one of .otlp, "),
        ("--asyncprof-report=no/r.html", "--asyncprof-report: no/r.html cannot be written: there is no folder no"),
    ],
)
def test_a_bad_option_is_a_usage_error(folder: Path, option: str, complaint: str) -> None:
    """Before any test runs."""
    done = run_pytest(folder, option, "test_it.py")
    assert done.returncode == 4
    assert complaint in done.stderr
