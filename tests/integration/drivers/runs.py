"""Runs a program of programs/ and answers what its profile and its spans say of a function."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = Path(__file__).parent / "programs"
TIMEOUT_SECONDS = 120.0
INSTRUMENTATION = "opentelemetry.instrumentation."


class Link(NamedTuple):
    """The span of a sample: who made it, and below which span it stands."""

    scope: str
    parent: str | None


REQUEST = Link("requests", None)


@dataclass(frozen=True)
class Seen:
    """A stack with a function."""

    own: tuple[str, ...]  # the functions of our program, root first
    first: str | None  # what the function calls
    link: Link | None
    functions: tuple[str, ...]  # all of them


@dataclass(frozen=True)
class Caller:
    """What a slow span says of its caller."""

    function: str
    file: str
    line: int
    own: tuple[str, ...]  # the functions of our program in its stacktrace, root first


class DriverRun:
    """What one program gave."""

    def __init__(self, program: str, report: dict[str, Any]) -> None:
        self.program = program
        self.samples: list[dict[str, Any]] = report["samples"]
        self.spans: dict[str, dict[str, Any]] = {span["id"]: span for span in report["spans"]}

    def link(self, sample: dict[str, Any]) -> Link | None:
        """None: the sample has no link; KeyError: its link leads to no span."""
        if int(sample["span"], 16) == 0:
            return None
        span = self.spans[sample["span"]]
        parent = self.spans[span["parent"]]["name"] if span["parent"] else None
        return Link(span["scope"].removeprefix(INSTRUMENTATION), parent)

    def seen(self, function: str, state: str, leaf: str) -> Seen:
        """The stack of that leaf in which a function of the program spent most time in that state.

        In every sample, whatever its state and leaf, the function must have been called from the same place.
        """
        samples = [sample for sample in self.samples if function in own_functions(sample)]
        ways = {own[: own.index(function)] for own in map(own_functions, samples)}
        assert len(ways) <= 1, ways
        found = [sample for sample in samples if sample["state"] == state and sample["frames"][-1][0] == leaf]
        assert found, f"{function} was never {state} in {leaf}; there are:\n{self.describe()}"
        sample = max(found, key=lambda sample: sample["wall_ns"])
        functions = tuple(name for name, _, _ in sample["frames"])
        above = functions[functions.index(function) + 1 :]
        return Seen(own_functions(sample), above[0] if above else None, self.link(sample), functions)

    def callers(self, scope: str, function: str, line: int) -> set[Caller]:
        """What the slow spans of an instrumentation say that name this place.

        On a slow machine there are others of the same function: of what it does before and after the query.
        """
        return {
            caller_of(span["attributes"])
            for span in self.spans.values()
            if span["scope"].removeprefix(INSTRUMENTATION) == scope
            and span["attributes"].get("code.function.name") == function
            and span["attributes"]["code.line.number"] == line
        }

    def line(self, text: str) -> int:
        """The line of the program that has this text."""
        lines = (PROGRAMS / self.program).read_text(encoding="utf-8").splitlines()
        [number] = [number for number, line in enumerate(lines, 1) if text in line]
        return number

    def describe(self) -> str:
        """All stacks, for a failed test to show."""
        return "\n".join(
            f"  {sample['wall_ns'] / 1e6:.0f} ms {sample['state']} {self.link(sample)}: "
            + " > ".join(name for name, _, _ in sample["frames"])
            for sample in sorted(self.samples, key=lambda sample: -sample["wall_ns"])
        )


def own_functions(sample: dict[str, Any]) -> tuple[str, ...]:
    """The functions of the program on a stack, root first."""
    return tuple(name for name, file, _ in sample["frames"] if is_own(file))


def is_own(file: str) -> bool:
    """Whether a file is one of the programs."""
    return Path(file).parent == PROGRAMS


def caller_of(attributes: dict[str, Any]) -> Caller:
    """Reads the attributes of the semantic conventions."""
    frames = [line.strip().split('"') for line in attributes["code.stacktrace"].splitlines() if '"' in line]
    return Caller(
        attributes["code.function.name"],
        Path(attributes["code.file.path"]).name,
        attributes["code.line.number"],
        tuple(rest.rpartition(" in ")[2] for _, file, rest in frames if is_own(file)),
    )


@functools.cache
def run(program: str, *arguments: str) -> DriverRun:
    """Runs the program once for all tests that ask about it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / program), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return DriverRun(program, json.loads(done.stdout))
