"""Programs that run with tests/native/interposed.c preloaded."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
PROGRAMS = Path(__file__).parent / "programs"
FLAGS = ["-shared", "-fPIC", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
TIMEOUT_SECONDS = 240


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="interposed_")


@functools.cache
def library() -> str:
    """Compiles the library, once per test run."""
    target = Path(_folder().name) / "interposed.so"
    command = ["gcc", *FLAGS, "-o", str(target), str(TESTS / "native" / "interposed.c")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(target)


def run_program(name: str, *arguments: object, **variables: str) -> Any:
    """Runs a program of tests/stress/programs to its end; gives the JSON that it prints last."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    command = [sys.executable, str(PROGRAMS / name), *map(str, arguments)]
    env = {**inherited, "LD_PRELOAD": library(), "PYTHONPATH": str(TESTS), **variables}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout.splitlines()[-1]) | {"stderr": done.stderr}
