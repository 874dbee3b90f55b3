"""Medians over rounds, ratios within one round, and the Markdown that shows them."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from peers.environments import Environment
from peers.profilers import PROFILERS, PROGRAMS, Profiler
from peers.runs import Result


@dataclass(frozen=True)
class Spread:
    """The median of some runs, with the least and the greatest."""

    median: float
    least: float
    greatest: float
    number: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread | None":
        """None without values."""
        return cls(statistics.median(values), min(values), max(values), len(values)) if values else None


@dataclass(frozen=True)
class Row:
    """One profiler on one program."""

    profiler: str
    runs: int
    failures: tuple[str, ...]  # each reason once
    figures: dict[str, Spread] = field(default_factory=dict)


def figures_of(run: Mapping[str, Any], baseline: Mapping[str, Any] | None) -> dict[str, float]:
    """The figures that are compared: of one run, and of the baseline's run in the same round."""
    seconds = run["seconds"]
    found = {
        "profiler_share": run["profiler_cpu"] / seconds,
        "total_share": run["total_cpu"] / seconds,
        "rss_growth_mib": run["rss_growth_mib"],
        "rss_peak_mib": run["rss_peak_mib"],
        "last_export_cpu": run["last_export_cpu"],
    }
    for key in ("late_p50_ms", "late_p99_ms", "late_max_ms", "request_p50_ms", "request_p99_ms"):
        if key in run:
            found[key] = run[key]
    if "units" in run:
        found["units_per_cpu"] = run["units"] / run["application_cpu"]
        found["units_per_second"] = run["units"] / seconds
    if baseline is not None:
        found["rss_added_mib"] = run["rss_peak_mib"] - baseline["rss_peak_mib"]
        if "units" in run and baseline.get("units"):
            found["units_ratio"] = found["units_per_cpu"] / (baseline["units"] / baseline["application_cpu"])
    for key in ("stacks_per_second", "right_parent_per_second", "right_span_per_second", "right_per_second"):
        found[key] = run[key]
    for kind in ("right_parent", "right"):
        if run[f"{kind}_per_second"]:
            found[f"us_per_{kind}"] = 1e6 * found["profiler_share"] / run[f"{kind}_per_second"]
    return found | _of_ours(run["profile"])


def _of_ours(profile: Mapping[str, Any]) -> dict[str, float]:
    """What our own counters say."""
    window, stats = profile.get("window"), profile.get("stats") or {}
    if window is None:
        return {}
    found = {
        "ticks_per_second": window["ticks"] / profile["seconds"],
        "visits_per_second": window["tasks_visited"] / profile["seconds"],
        "counted_share": window["sampler_cpu_ns"] / 1e9 / profile["seconds"],
    }
    if window["ticks"]:
        found["us_per_tick"] = window["sampler_cpu_ns"] / 1e3 / window["ticks"]
    return found | {key: float(stats[key]) for key in ("window", "visit_ns") if stats.get(key) is not None}


def aggregate(results: Iterable[Result]) -> dict[str, dict[str, Row]]:
    """Program -> profiler -> row, both in the order in which they are first met."""
    by_program: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        by_program.setdefault(result.program, {}).setdefault(result.profiler, []).append(result)
    return {
        program: {name: _row(name, runs, of_program) for name, runs in of_program.items()}
        for program, of_program in by_program.items()
    }


def _row(name: str, runs: list[Result], of_program: Mapping[str, list[Result]]) -> Row:
    baselines = {run.round: run.figures for run in of_program.get(PROFILERS[name].baseline, ()) if not run.failure}
    ours = {run.round: figures_of(run.figures, None) for run in of_program.get("ours", ()) if not run.failure}
    values: dict[str, list[float]] = {}
    for run in runs:
        if run.failure:
            continue
        found = figures_of(run.figures, baselines.get(run.round))
        for kind in ("right_parent", "right"):
            key = f"us_per_{kind}"
            if key in found and key in ours.get(run.round, {}):
                found[f"{kind}_against_ours"] = found[key] / ours[run.round][key]
        for key, value in found.items():
            values.setdefault(key, []).append(value)
    spreads = {key: spread for key, seen in values.items() if (spread := Spread.of(seen))}
    failures = tuple(dict.fromkeys(run.failure for run in runs if run.failure))
    return Row(name, len(runs), failures, spreads)


# Columns: heading, key, how a number is written, and whether the least and the greatest are of interest.
COST: tuple[tuple[str, str, str, bool], ...] = (
    ("{unit} per CPU second", "units_per_cpu", "{:,.0f}", True),
    ("of the baseline's", "units_ratio", "{:.3f}", True),
    ("profiler, share of a core", "profiler_share", "{:.2%}", True),
    ("all CPU, share of a core", "total_share", "{:.1%}", False),
    ("request p50, ms", "request_p50_ms", "{:.1f}", False),
    ("request p99, ms", "request_p99_ms", "{:.1f}", False),
    ("late p50, ms", "late_p50_ms", "{:.2f}", False),
    ("late p99, ms", "late_p99_ms", "{:.2f}", False),
    ("late max, ms", "late_max_ms", "{:.1f}", False),
    ("RSS peak, MiB", "rss_peak_mib", "{:.0f}", False),
    ("above the baseline's", "rss_added_mib", "{:+.1f}", False),
    ("growth in the window", "rss_growth_mib", "{:+.1f}", False),
)
DELIVERED: tuple[tuple[str, str, str, bool], ...] = (
    ("stacks/s", "stacks_per_second", "{:,.0f}", False),
    ("right parent/s", "right_parent_per_second", "{:,.0f}", False),
    ("right span/s", "right_span_per_second", "{:,.0f}", False),
    ("both right/s", "right_per_second", "{:,.0f}", False),
    ("CPU per stack with right parent, us", "us_per_right_parent", "{:,.2f}", False),
    ("against ours", "right_parent_against_ours", "{:,.1f} x", True),
    ("CPU per stack with both right, us", "us_per_right", "{:,.2f}", False),
    ("against ours", "right_against_ours", "{:,.1f} x", True),
)
OF_OURS: tuple[tuple[str, str, str], ...] = (
    ("ticks/s", "ticks_per_second", "{:.1f}"),
    ("us per tick", "us_per_tick", "{:.0f}"),
    ("looks at tasks/s", "visits_per_second", "{:,.0f}"),
    ("window M", "window", "{:.1f}"),
    ("ns per look", "visit_ns", "{:.0f}"),
    ("sampler by its own count, share of a core", "counted_share", "{:.2%}"),
    ("CPU of the last export, s", "last_export_cpu", "{:.4f}"),
)


def markdown(
    rows: Mapping[str, Mapping[str, Row]],
    machine: Mapping[str, str],
    environments: Mapping[str, Environment],
    settings: Mapping[str, object],
) -> str:
    """The whole report."""
    parts = [
        "## Machine and settings",
        _table(("", ""), [*machine.items(), *((key, str(value)) for key, value in settings.items())]),
        "## Profilers",
        _table(
            ("", "version", "settings", "how its stacks are counted"),
            [_profiler_cells(PROFILERS[name], environment) for name, environment in environments.items()],
        ),
    ]
    for program, of_program in rows.items():
        unit = PROGRAMS[program].unit
        parts += [f"## {program}", _columns(COST, unit, of_program), _columns(DELIVERED, unit, of_program)]
        parts += [
            f"{row.profiler} failed in {row.runs - _successes(row)} of {row.runs} runs: {reason}"
            for row in of_program.values()
            for reason in row.failures
        ]
    of_ours = [(program, of_program["ours"]) for program, of_program in rows.items() if "ours" in of_program]
    if of_ours:
        lines = [
            (program, *(_cell(row, key, pattern, False) for _, key, pattern in OF_OURS)) for program, row in of_ours
        ]
        parts += ["## What our own counters say", _table(("", *(heading for heading, _, _ in OF_OURS)), lines)]
    return "\n\n".join(parts) + "\n"


def _successes(row: Row) -> int:
    return row.figures["profiler_share"].number if row.figures else 0


def _profiler_cells(profiler: Profiler, environment: Environment) -> tuple[str, ...]:
    if environment.python is None:
        return profiler.name, "**not run**", environment.reason, ""
    return profiler.name, environment.version or "-", profiler.settings, profiler.counted


def _columns(columns: tuple[tuple[str, str, str, bool], ...], unit: str, of_program: Mapping[str, Row]) -> str:
    used = [column for column in columns if any(column[1] in row.figures for row in of_program.values())]
    headings = ("", *(heading.format(unit=unit) for heading, *_ in used))
    lines = [
        (name, *(_cell(row, key, pattern, with_range) for _, key, pattern, with_range in used))
        for name, row in of_program.items()
    ]
    return _table(headings, lines)


def _cell(row: Row, key: str, pattern: str, with_range: bool) -> str:
    spread = row.figures.get(key)
    if spread is None:
        return "-"
    text = pattern.format(spread.median)
    if with_range and spread.number > 1:
        text += f" ({pattern.format(spread.least)} to {pattern.format(spread.greatest)})"
    return text


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows
    )
