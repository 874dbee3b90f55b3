"""Runs of programs under profilers: round after round, all profilers within a round, in an order that rotates."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from peers.delivered import Truth, judge, per_second
from peers.environments import Environment
from peers.profilers import Profiler, Program
from peers.sink import sink

BENCHMARKS = Path(__file__).resolve().parents[1]
START_AND_STOP_SECONDS = 120  # allowed beside warm-up and window


@dataclass(frozen=True)
class Result:
    """One run: its figures, or why there are none."""

    program: str
    profiler: str
    round: int
    figures: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


def order(profilers: Sequence[Profiler], round_number: int) -> list[Profiler]:
    """The profilers of one round: each round begins with another."""
    start = round_number % len(profilers)
    return [*profilers[start:], *profilers[:start]]


def run_all(
    profilers: Sequence[Profiler],
    environments: dict[str, Environment],
    programs: Sequence[Program],
    *,
    rounds: int,
    seconds: float,
    warmup: float,
) -> Iterator[Result]:
    """All runs; a profiler that cannot be run yields nothing, one that fails says so."""
    for round_number in range(rounds):
        for program in programs:
            for profiler in order(profilers, round_number):
                python = environments[profiler.name].python
                if python is not None:
                    yield run(profiler, python, program, round_number, seconds=seconds, warmup=warmup)


def run(
    profiler: Profiler, python: Path, program: Program, round_number: int, *, seconds: float, warmup: float
) -> Result:
    """One run in a process and a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="peers-") as folder, sink(Path(folder)) as url:
        command = [str(python), "-m", f"programs.{program.module}", "--profiler", profiler.name, "--sink", url]
        command += ["--directory", folder, "--seconds", str(seconds), "--warmup", str(warmup), *program.arguments]
        failure, figures = _figures(command, folder, seconds + warmup + START_AND_STOP_SECONDS)
        if not failure:
            truth = Truth.read(Path(folder))
            try:
                verdict = judge(profiler.read(Path(folder), figures["profile"]), truth)
            except (OSError, ValueError, LookupError) as error:
                failure = f"what it delivered cannot be read: {type(error).__name__}: {error}"
            else:
                figures["verdict"] = asdict(verdict)
                figures |= per_second(verdict, truth, figures["profile"])
        return Result(program.name, profiler.name, round_number, figures, failure)


def _figures(command: list[str], folder: str, seconds: float) -> tuple[str, dict[str, Any]]:
    # The environment of this run must not switch on a profiler, nor change the settings of one.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "DD_", "PYTHON"))}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=kept | {"PYTHONPATH": str(BENCHMARKS)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # with its load and its sampler
        process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return f"not done within {seconds:.0f} s", {}
    lines = errors.strip().splitlines()
    if process.returncode != 0:
        return f"exit status {process.returncode}: {lines[-1] if lines else ''}", {}
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return "", figures
