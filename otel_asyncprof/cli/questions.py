"""What the questions to a recording have in common: `otel-asyncprof traces`, `queries` and `stacks`."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .messages import NOTHING_FOUND, Style, say, write, write_lines
from .reading import read_findings
from .values import duration

if TYPE_CHECKING:
    from ..analysis.findings import Findings

SHOWN = 20


def add_arguments(
    parser: argparse.ArgumentParser, name: str, slowest: str, answer: "Callable[[Findings, bool], Answer]"
) -> None:
    """Adds the arguments of a question to its parser."""
    parser.add_argument("file", metavar="FILE", help="a recording: otel-asyncprof run -o FILE")
    parser.add_argument("--slowest", action="store_true", help=slowest)
    parser.add_argument("--since", type=duration, metavar="TIME", help="only the last 30s, 10m or 1h of the recording")
    parser.add_argument("--service", metavar="NAME", help="only this service")
    parser.add_argument("-n", type=_count, default=SHOWN, metavar="NUMBER", help=f"show so many (default {SHOWN})")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--fail-if-empty", action="store_true", help="exit status 1 when nothing is found")
    parser.set_defaults(run=lambda chosen: _run(chosen, name, answer))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


@dataclasses.dataclass
class Answer:
    """What was found, as values of the analysis, and how they are shown."""

    found: Sequence[Any]
    to_lines: Callable[[Sequence[Any], Style], list[str]]
    to_json: Callable[[Any], dict[str, Any]]


def _run(chosen: argparse.Namespace, name: str, answer: "Callable[[Findings, bool], Answer]") -> int:
    findings = _narrowed(read_findings(chosen.file), chosen)
    found = answer(findings, chosen.slowest)
    shown = found.found[: chosen.n]
    if chosen.json:
        write(json.dumps({name: [found.to_json(item) for item in shown], "found": len(found.found)}, indent=1) + "\n")
    elif shown:
        write_lines(found.to_lines(shown, Style(sys.stdout)))
        if len(shown) < len(found.found):
            say(f"{len(found.found) - len(shown)} more: -n {len(found.found)} shows all")
    else:
        say(_why_empty(findings, name))
    return NOTHING_FOUND if chosen.fail_if_empty and not shown else 0


def _narrowed(findings: "Findings", chosen: argparse.Namespace) -> "Findings":
    from ..analysis.findings import Findings

    processes, spans = findings.processes, list(findings.spans.by_id.values())
    if chosen.service:
        processes = [process for process in processes if process.service == chosen.service]
        spans = [span for span in spans if span.service == chosen.service]
    if chosen.since:
        begin = findings.end_ns - int(chosen.since * 1e9)
        processes = [process.since(begin) for process in processes]
        spans = [span for span in spans if span.end_ns >= begin]
    return Findings(processes, spans)


def _why_empty(findings: "Findings", name: str) -> str:
    if name == "stacks":
        return "no samples in what you asked for"
    if not findings.spans.by_id:
        return "no spans in what you asked for; `otel-asyncprof run --instrument` records them"
    return "no queries in what you asked for: no span has db.query.text, db.statement or db.system"
