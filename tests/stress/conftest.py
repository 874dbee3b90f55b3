"""Fixtures that run the programs of the signal tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import PIPE

import pytest
from stress.signal_programs import HERE, TIMEOUT_SECONDS, RunSteps


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of the programs, with the library of foreign handlers."""
    library = tmp_path_factory.mktemp("foreign") / "foreign.so"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-infinite-recursion", "-O1", "-pthread"]
    subprocess.run(["gcc", *flags, "-shared", "-fPIC", HERE / "foreign_handlers.c", "-o", library], check=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTEST_", "PYTHONF"))}
    return own | {"FOREIGN_HANDLERS": str(library)}


@pytest.fixture(scope="module")
def server(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The process that runs programs, each in a fork of its own in which everything is imported."""
    command = [sys.executable, str(HERE / "signal_steps.py")]
    with subprocess.Popen(command, env=environment, stdin=PIPE, stdout=PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def run(server: subprocess.Popen[str], tmp_path: Path) -> RunSteps:
    """Runs the steps of a program; gives its exit status and what it wrote to stderr."""

    def run_steps(*steps: str) -> tuple[int, str]:
        errors = tmp_path / "errors.txt"
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"program": "\n".join(steps), "errors": str(errors)}) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return status, errors.read_text(encoding="utf-8")

    return run_steps


@pytest.fixture
def run_anew(environment: dict[str, str]) -> RunSteps:
    """The same in a fresh interpreter, which has imported nothing of ours."""

    def run_steps(*steps: str, options: Sequence[str] = (), **variables: str) -> tuple[int, str]:
        program = "\n".join(["from signal_steps import *", "begin()", *steps])
        command = [sys.executable, *options, "-c", program]
        variables = environment | {"PYTHONPATH": str(HERE)} | variables
        ended = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
        return ended.returncode, ended.stderr

    return run_steps
