"""Fixtures of the behaviour tests: a target program runs in a fresh interpreter and its profile is read back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from assertions import RunTarget, checked

TESTS = Path(__file__).parent
TIMEOUT_SECONDS = 60
LOOP_KINDS = ["asyncio", "uvloop", *(["eager"] if sys.version_info >= (3, 12) else [])]


@pytest.fixture(params=LOOP_KINDS)
def loop_kind(request: pytest.FixtureRequest) -> str:
    """The event loop and the way tasks start."""
    kind: str = request.param
    return kind


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """Runs a target once for every set of options and keeps the result for all tests that look at it."""
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}

    def run(target: str, loop: str, capture: str, options: dict[str, Any]) -> dict[str, Any]:
        key = (target, loop, capture, json.dumps(options))
        if key not in kept:
            result = tmp_path_factory.mktemp("run") / "result.json"
            command = [sys.executable, str(TESTS / "run_target.py"), *key, str(result)]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
            assert done.returncode == 0, f"{' '.join(key)} ended with {done.returncode}:\n{done.stderr}"
            kept[key] = json.loads(result.read_text(encoding="utf-8")) | {"stderr": done.stderr}
        return kept[key]

    return run


@pytest.fixture
def run(results: Callable[..., dict[str, Any]], loop_kind: str) -> RunTarget:
    """Runs a target on each loop kind; every profile must be nearly free of unreadable stacks."""
    return lambda target, capture="settled", index=0, **options: checked(results(target, loop_kind, capture, options), index)


@pytest.fixture
def run_once(results: Callable[..., dict[str, Any]]) -> RunTarget:
    """The same for behaviours in which the loop kind plays no part."""
    return lambda target, capture="settled", index=0, **options: checked(results(target, "asyncio", capture, options), index)
