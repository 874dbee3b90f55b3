"""`otel-asyncprof report`: what a recording says, on the terminal or as one page."""

import argparse
import sys
from typing import TYPE_CHECKING

from .messages import USAGE, Failure, Style, duration_text, plain, say, write_lines
from .output import REPORT_SUFFIXES, Output
from .reading import convert, read_findings

if TYPE_CHECKING:
    from ..analysis.findings import Findings

SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.add_argument("file", metavar="FILE", help="a recording: otel-asyncprof run -o FILE")
    parser.add_argument("-o", "--output", metavar="PAGE", help="write one self-contained HTML page instead")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Prints the report, or writes the page."""
    if chosen.output:
        return _write_page(chosen)
    findings = read_findings(chosen.file)
    write_lines(lines_of(findings, Style(sys.stdout)))
    return 0


def _write_page(chosen: argparse.Namespace) -> int:
    from pathlib import Path

    output = Output(Path(chosen.output), "html", "wall")
    if chosen.output != "-" and not chosen.output.lower().endswith(REPORT_SUFFIXES):
        raise Failure(
            f"{output.path} is no name for a page, which ends in .html; other formats: otel-asyncprof export", USAGE
        )
    output.check()
    convert(chosen.file, output)
    if chosen.output != "-":
        say(f"written {output.path}")
    return 0


def lines_of(findings: "Findings", style: Style) -> list[str]:
    """The report for people."""
    from ..analysis.split import text_of
    from .tables import query_lines, request_lines, stack_lines

    n_samples = findings.n_observations
    linked = f", {findings.n_linked / n_samples:.0%} linked" if n_samples else ""
    seconds = duration_text(findings.end_ns - findings.start_ns)
    lines = [style.bold(f"{seconds}: {n_samples:,} samples{linked}, {len(findings.spans.by_id):,} spans")]
    for process in findings.processes:
        cpu = sum(timed.sample.cpu_ns for timed in process.samples)
        lasted = process.end_ns - process.start_ns
        lines.append(f"  {plain(process.name)}: {duration_text(lasted)}, CPU {duration_text(cpu)}")
    if split := findings.split():
        lines.append(f"  time of all tasks and threads: {text_of(split)}")
    sections = (
        ("Slowest requests", request_lines(findings.requests()[:SHOWN], style)),
        ("Queries with the most time", query_lines(findings.queries()[:SHOWN], style)),
        ("Stacks with the most time", stack_lines(findings.stacks()[:SHOWN], style)),
    )
    for title, section in sections:
        if section:
            lines += ["", style.bold(title), *section]
    return lines
