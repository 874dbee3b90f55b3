"""What the profiler may cost, and that saving does not change what is seen."""

import pytest
from assertions import RunTarget, wall_seconds


def test_the_budget_holds_whatever_a_tick_costs(run_once: RunTarget) -> None:
    """Two per cent, one second's worth saved up, and the tick that overdraws."""
    profile = run_once("costly_ticks", capture="own", rate=1000, cpu_budget=0.02)
    cost_of_tick = profile.stats["sampler_cpu_seconds"] / profile.stats["ticks"]
    assert cost_of_tick > 5 * 0.02 * 0.001, "the ticks were cheap"
    assert profile.stats["sampler_cpu_seconds"] <= 0.02 * (profile.wall + 1) + 2 * cost_of_tick


def test_the_whole_time_is_accounted_for_by_fewer_ticks(run_once: RunTarget) -> None:
    """Each of them weighs more; what comes after the last of them, at most one pause, is not seen."""
    profile = run_once("costly_ticks", capture="own", rate=1000, cpu_budget=0.02)
    resting = wall_seconds([s for s in profile.samples if "rest" in s.names]) / 3_000
    longest_pause = 1.0
    assert profile.wall - longest_pause < resting < profile.wall * 1.05


def test_a_process_in_which_nothing_runs_is_seen_as_it_is(run_once: RunTarget) -> None:
    """The stacks of rest, and those after the first move, each with their time."""
    profile = run_once("at_rest", capture="own")
    of_mover = profile.of_task("mover")
    assert profile.names([s for s in of_mover if s.state == "waiting"]) == {
        ("<module>", "start_target", "main", "mover", "before", "sleep"),
        ("<module>", "start_target", "main", "mover", "after", "sleep"),
    }
    assert wall_seconds([s for s in of_mover if "after" in s.names]) == pytest.approx(0.3, abs=0.05)
    assert wall_seconds(of_mover) == pytest.approx(profile.report["moved"], rel=0.1)


def test_a_process_in_which_nothing_runs_costs_little(run_once: RunTarget) -> None:
    """A task at rest is not read again: well under a microsecond, where a reading with all attributes takes 2 to 3."""
    profile = run_once("at_rest", capture="own")
    assert profile.stats["sampler_cpu_seconds"] / profile.stats["tasks_visited"] < 0.6e-6
