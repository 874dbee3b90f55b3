"""`otel-asyncprof stacks`."""

import argparse
from typing import TYPE_CHECKING

from . import questions

if TYPE_CHECKING:
    from ..analysis.findings import Findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    questions.add_arguments(parser, "stacks", "by the time spent waiting, instead of by all time", _answer)


def _answer(findings: "Findings", slowest: bool) -> questions.Answer:
    from .tables import stack_json, stack_lines

    found = findings.stacks()
    if slowest:
        found.sort(key=lambda stack: -stack.split.get("waiting", 0))
    return questions.Answer(found, stack_lines, stack_json)
