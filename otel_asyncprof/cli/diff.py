"""`otel-asyncprof diff`: what takes more time in the second of two recordings."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from .messages import REGRESSION, Style, duration_text, plain, say, write, write_lines
from .reading import read_findings
from .values import percent

if TYPE_CHECKING:
    from ..analysis.comparison import Change, Comparison, Operation

SHOWN_FUNCTIONS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.add_argument("before", metavar="A", help="a recording")
    parser.add_argument("after", metavar="B", help="a later recording of the same work")
    parser.add_argument(
        "--fail-over",
        type=percent,
        metavar="SHARE",
        help="exit status 1 when a request takes more time by over 10%% (CPU time when no request is in both)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Prints what has changed; 1 for a regression when that is asked for."""
    from ..analysis.comparison import compare

    comparison = compare(read_findings(chosen.before), read_findings(chosen.after))
    regressions = [] if chosen.fail_over is None else comparison.regressions(chosen.fail_over)
    if chosen.json:
        write(json.dumps(_to_json(comparison, regressions), indent=1) + "\n")
    else:
        write_lines(_lines(comparison, Style(sys.stdout)))
    for change in regressions:
        say(f"{plain(change.name)} takes {_change_text(change)} more than before: over {chosen.fail_over:.0%}")
    return REGRESSION if regressions else 0


def _lines(comparison: "Comparison", style: Style) -> list[str]:
    lines = []
    for operation in comparison.operations:
        lines += [style.bold(plain(operation.name)), *_operation_lines(operation)]
    each = " per request" if comparison.per_request else ""
    lines.append(_line(f"CPU time{each}", comparison.cpu))
    changed = [change for change in comparison.functions if change.difference_ns][:SHOWN_FUNCTIONS]
    if changed:
        lines += ["", style.bold(f"Functions whose own time has changed the most{each}")]
        lines += [f"{_signed(change.difference_ns):>12}  {plain(change.name)}" for change in changed]
    return lines


def _operation_lines(operation: "Operation") -> list[str]:
    counts = f"  {operation.n_before} and {operation.n_after} requests"
    return [
        counts,
        _line("  mean", operation.mean),
        _line("  p95", operation.p95),
        *(_line(f"  {change.name}", change) for change in operation.split),
    ]


def _line(name: str, change: "Change") -> str:
    times = f"{duration_text(change.before_ns):>10} → {duration_text(change.after_ns):>10}"
    return f"{name:<26}{times}  {_change_text(change)}"


def _change_text(change: "Change") -> str:
    ratio = "" if change.ratio == float("inf") else f" ({change.ratio:+.0%})"
    return f"{_signed(change.difference_ns)}{ratio}"


def _signed(nanoseconds: float) -> str:
    return ("+" if nanoseconds >= 0 else "-") + duration_text(abs(nanoseconds))


def _to_json(comparison: "Comparison", regressions: "list[Change]") -> dict[str, Any]:
    return {
        "operations": [
            {
                "name": operation.name,
                "requests": [operation.n_before, operation.n_after],
                "mean_ms": _pair(operation.mean),
                "p95_ms": _pair(operation.p95),
                "time_ms": {change.name: _pair(change) for change in operation.split},
            }
            for operation in comparison.operations
        ],
        "per_request": comparison.per_request,
        "cpu_ms": _pair(comparison.cpu),
        "functions": [{"name": change.name, "ms": _pair(change)} for change in comparison.functions],
        "regressions": [change.name for change in regressions],
    }


def _pair(change: "Change") -> list[float]:
    return [change.before_ns / 1e6, change.after_ns / 1e6]
