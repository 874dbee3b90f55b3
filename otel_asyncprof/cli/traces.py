"""`otel-asyncprof traces`."""

import argparse
from typing import TYPE_CHECKING

from . import questions

if TYPE_CHECKING:
    from ..analysis.findings import Findings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    questions.add_arguments(parser, "traces", "the slowest first, instead of the newest", _answer)


def _answer(findings: "Findings", slowest: bool) -> questions.Answer:
    from .tables import request_json, request_lines

    found = findings.requests()
    if not slowest:
        found.sort(key=lambda slow: -slow.span.start_ns)
    return questions.Answer(found, request_lines, request_json)
