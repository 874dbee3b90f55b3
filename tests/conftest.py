"""Fixtures of the behaviour tests: a target program runs in a fresh interpreter and its profile is read back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from assertions import Run, RunTarget, checked

TESTS = Path(__file__).parent
LOOP_KINDS = ["asyncio", "uvloop", *(["eager"] if sys.version_info >= (3, 12) else [])]


@pytest.fixture(params=LOOP_KINDS)
def loop_kind(request: pytest.FixtureRequest) -> str:
    """The event loop and the way tasks start."""
    kind: str = request.param
    return kind


@pytest.fixture(scope="session")
def runner() -> Iterator[subprocess.Popen[str]]:
    """The process that runs targets, each in a fork of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    command = [sys.executable, str(TESTS / "run_target.py")]
    with subprocess.Popen(command, env=environment, stdin=PIPE, stdout=PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="session")
def results(runner: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Runs a target once for every set of options and keeps the result for all tests that look at it."""
    kept: dict[str, dict[str, Any]] = {}

    def run(**order: Any) -> dict[str, Any]:
        key = json.dumps(order)
        if key not in kept:
            result, errors = (tmp_path_factory.mktemp("run") / name for name in ("result.json", "errors.txt"))
            assert runner.stdin is not None
            assert runner.stdout is not None
            runner.stdin.write(json.dumps(order | {"result": str(result), "errors": str(errors)}) + "\n")
            runner.stdin.flush()
            status = runner.stdout.readline().strip()
            stderr = errors.read_text(encoding="utf-8") if errors.exists() else ""
            assert status == "0", f"{key} ended with {status or 'the runner'}:\n{stderr}"
            kept[key] = json.loads(result.read_text(encoding="utf-8")) | {"stderr": stderr}
        return kept[key]

    return run


@pytest.fixture
def run(results: Callable[..., dict[str, Any]], loop_kind: str) -> RunTarget:
    """Runs a target on each loop kind; every profile must be nearly free of unreadable stacks."""
    return run_target(results, loop_kind)


@pytest.fixture
def run_once(results: Callable[..., dict[str, Any]]) -> RunTarget:
    """The same for behaviours in which the loop kind plays no part."""
    return run_target(results, "asyncio")


def run_target(results: Callable[..., dict[str, Any]], loop: str) -> RunTarget:
    def run(target: str, capture: str = "settled", index: int = 0, **options: Any) -> Run:
        return checked(results(target=target, loop=loop, capture=capture, options=options), index)

    return run
