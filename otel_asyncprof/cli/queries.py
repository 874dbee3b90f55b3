"""`otel-asyncprof queries`."""

import argparse
from typing import TYPE_CHECKING

from . import questions

if TYPE_CHECKING:
    from ..analysis.findings import Findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    questions.add_arguments(parser, "queries", "by the slowest run, instead of by all runs", _answer)


def _answer(findings: "Findings", slowest: bool) -> questions.Answer:
    from .tables import query_json, query_lines

    found = findings.queries()
    if slowest:
        found.sort(key=lambda query: -query.durations_ns[-1])
    return questions.Answer(found, query_lines, query_json)
