"""Runs tests of the standard library in the current directory, inside a span, and writes what became of each, as JSON.

usage: standard_library.py FILE MODULE_OR_TEST ...
"""

import json
import sys
import unittest
from typing import Any

from opentelemetry import trace
from test import support


class Outcomes(unittest.TestResult):
    """One word for each test and failed subtest; the tracebacks go to the standard error."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, str] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.seen[test.id()] = "success"

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.seen[test.id()] = "skip"

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.seen[test.id()] = "expected failure"

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.seen[test.id()] = "unexpected success"

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self.seen[test.id()] = err[0].__name__
        print(test.id(), self._exc_info_to_string(err, test), sep="\n", file=sys.stderr)  # type: ignore[attr-defined]

    addFailure = addError

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self.addError(subtest, err)


def run(names: list[str]) -> dict[str, str]:
    outcomes = Outcomes()
    with trace.get_tracer("tests").start_as_current_span("tests"):
        unittest.defaultTestLoader.loadTestsFromNames(names).run(outcomes)
    return outcomes.seen | {"environment altered": str(support.environment_altered)}


if __name__ == "__main__":
    support.use_resources = []
    seen = run(sys.argv[2:])
    with open(sys.argv[1], "w", encoding="utf-8") as output:
        json.dump(seen, output)
