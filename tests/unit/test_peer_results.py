"""Medians over rounds, ratios within one round, and the table, on runs that are made up."""

from pathlib import Path

from peers.environments import Environment
from peers.profilers import PROFILERS
from peers.results import Spread, aggregate, markdown
from peers.runs import Result, order

PROGRAM = "waiting-1000-busy"


def run(profiler, round_number, *, units, profiler_cpu=0.0, right=0.0, profile=None):
    """A run of four seconds in which the application had two CPU seconds."""
    figures = {
        "seconds": 4.0,
        "application_cpu": 2.0,
        "profiler_cpu": profiler_cpu,
        "total_cpu": 2.0 + profiler_cpu,
        "rss_growth_mib": 0.5,
        "rss_peak_mib": 30.0 + 10 * (profiler != "none"),
        "last_export_cpu": 0.25,
        "late_p50_ms": 1.5,
        "units": units,
        "stacks_per_second": 2 * right,
        "right_parent_per_second": right,
        "right_span_per_second": right,
        "right_per_second": right,
        "profile": profile or {},
    }
    return Result(PROGRAM, profiler, round_number, figures)


def test_a_ratio_is_taken_within_one_round():
    """A round in which the machine is slow is slow for both: 0.9, 0.8 and 1.0, whose median is 0.9."""
    none = [run("none", number, units=units) for number, units in enumerate((1000, 100, 10))]
    beacon = [run("beacon", number, units=units) for number, units in enumerate((900, 80, 10))]
    rows = aggregate([*none, *beacon])[PROGRAM]
    assert rows["beacon"].figures["units_ratio"] == Spread(0.9, 0.8, 1.0, 3)
    assert rows["none"].figures["units_per_cpu"] == Spread(50, 5, 500, 3)


def test_ddtrace_is_compared_with_its_own_tracer():
    """What its spans cost is not the profiler's."""
    rows = aggregate([run("none", 0, units=1000), run("ddtrace-tracer", 0, units=800), run("ddtrace", 0, units=600)])
    assert rows[PROGRAM]["ddtrace"].figures["units_ratio"].median == 0.75


def test_a_failed_run_counts_in_no_median_and_is_named():
    """Nor does it take the others of its round along."""
    failed = Result(PROGRAM, "none", 1, failure="exit status 1: it broke")
    runs = [run("none", 0, units=100), failed, run("ours", 0, units=99), run("ours", 1, units=50)]
    rows = aggregate(runs)[PROGRAM]
    assert rows["none"].failures == ("exit status 1: it broke",)
    assert rows["ours"].figures["units_ratio"] == Spread(0.99, 0.99, 0.99, 1)
    assert rows["ours"].figures["units_per_cpu"].number == 2


def test_the_price_of_a_right_stack_is_set_against_ours():
    """0.04 CPU s in 4 s for 1,000 stacks a second are 10 us each; 0.4 CPU s for 500 are 200."""
    runs = [
        run("ours", 0, units=1, profiler_cpu=0.04, right=1000),
        run("ddtrace", 0, units=1, profiler_cpu=0.4, right=500),
    ]
    figures = aggregate(runs)[PROGRAM]["ddtrace"].figures
    assert round(figures["us_per_right"].median, 9) == 200
    assert round(figures["right_against_ours"].median, 9) == 20


def test_who_delivers_no_right_stack_has_no_price():
    """It is not a price of zero."""
    assert "us_per_right" not in aggregate([run("py-spy", 0, units=1, profiler_cpu=0.1)])[PROGRAM]["py-spy"].figures


def test_every_round_begins_with_another_profiler():
    """No profiler always runs first."""
    profilers = [PROFILERS[name] for name in ("none", "ours", "ddtrace")]
    orders = [[profiler.name for profiler in order(profilers, number)] for number in range(4)]
    first, second, third = ["none", "ours", "ddtrace"], ["ours", "ddtrace", "none"], ["ddtrace", "none", "ours"]
    assert orders == [first, second, third, first]


def test_the_report_shows_each_profiler_and_why_one_was_not_run():
    """Cells in the order of the columns, a range where it matters, what failed below the table."""
    profile = {
        "seconds": 4.0,
        "window": {"ticks": 400, "tasks_visited": 8000, "sampler_cpu_ns": 40_000_000},
        "stats": {"window": 3, "visit_ns": 250},
    }
    runs = [run("none", 0, units=1000), run("none", 1, units=500)]
    runs += [run("ours", 0, units=990, profiler_cpu=0.04, right=1000, profile=profile)]
    runs += [Result(PROGRAM, "ours", 1, failure="not done within 9 s")]
    environments = {
        "none": Environment(Path("/usr/bin/python")),
        "ours": Environment(Path("/usr/bin/python"), "0.1.0"),
        "austin": Environment(None, reason="it needs a newer C library"),
    }
    lines = markdown(aggregate(runs), {"cores": "2"}, environments, {"rounds": 2}).splitlines()
    assert "| cores | 2 |" in lines
    assert "| rounds | 2 |" in lines
    assert "| austin | **not run** | it needs a newer C library |  |" in lines
    assert "| ours | 495 | 0.990 | 1.00% | 51.0% | 1.50 | 40 | +10.0 | +0.5 |" in lines
    ranges = "375 (250 to 500) | 1.000 (1.000 to 1.000) | 0.00% (0.00% to 0.00%)"
    assert f"| none | {ranges} | 50.0% | 1.50 | 30 | +0.0 | +0.5 |" in lines
    assert "| ours | 2,000 | 1,000 | 1,000 | 1,000 | 10.00 | 1.0 x | 10.00 | 1.0 x |" in lines
    assert "ours failed in 1 of 2 runs: not done within 9 s" in lines
    assert f"| {PROGRAM} | 100.0 | 100 | 2,000 | 3.0 | 250 | 1.00% | 0.2500 |" in lines
