"""`otel-asyncprof doctor`: whether everything that profiling needs is in place, and what to do where it is not."""

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .messages import UNSUPPORTED, Style, write, write_lines

_PROBLEMS_FOUND = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.epilog = "Exit status: 0 only when all is well."
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Runs all checks and prints what they have found."""
    from . import checks

    with _quiet():
        results = checks.run_all()
    if chosen.json:
        document = {"ok": not any(result.is_problem for result in results), "checks": [r.to_json() for r in results]}
        write(json.dumps(document, indent=1) + "\n")
    else:
        write_lines(_lines(results, Style(sys.stdout)))
    if any(result.is_problem and result.name == checks.INTERPRETER for result in results):
        return UNSUPPORTED
    return _PROBLEMS_FOUND if any(result.is_problem for result in results) else 0


@contextmanager
def _quiet() -> Iterator[None]:
    """What a check finds is its result; the same in the log would be said twice."""
    logger = logging.getLogger("otel_asyncprof")
    handler = logging.NullHandler()
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = True
        logger.removeHandler(handler)


def _lines(results: "list[Any]", style: Style) -> list[str]:
    lines = []
    for result in results:
        word = style.red("problem") if result.is_problem else style.dim(result.outcome)
        padding = " " * (9 - len(result.outcome))
        lines.append(f"{word}{padding}{style.bold(result.name)}: {result.detail}")
        if result.next_step:
            lines.append(f"{' ' * 9}next: {result.next_step}")
    n_problems = sum(1 for result in results if result.is_problem)
    lines.append("All is well." if n_problems == 0 else f"{n_problems} problem{'s' if n_problems > 1 else ''} found.")
    return lines
