"""What the profiler may cost, and that saving does not change what is seen."""

import pytest
from assertions import RunTarget, wall_seconds


def test_the_budget_holds_whatever_there_is_to_look_at(run_once: RunTarget) -> None:
    """Two per cent, one second's worth saved up, and the tick that overdraws; the window is narrowed for it."""
    profile = run_once("costly_ticks", capture="own", cpu_budget=0.02)
    assert profile.stats["window"] > 5
    cost_of_tick = profile.stats["sampler_cpu_seconds"] / profile.stats["ticks"]
    assert profile.stats["sampler_cpu_seconds"] <= 0.02 * (profile.wall + 1) + 2 * cost_of_tick


def test_the_whole_time_is_accounted_for_under_a_window(run_once: RunTarget) -> None:
    """Each task that is looked at stands for those that are not."""
    profile = run_once("costly_ticks", capture="own", cpu_budget=0.02)
    resting = wall_seconds([s for s in profile.samples if "rest" in s.names]) / 3_000
    assert resting == pytest.approx(profile.wall, rel=0.1)


def test_a_process_in_which_nothing_runs_is_seen_as_it_is(run_once: RunTarget) -> None:
    """The stacks of rest, and those after the first move, each with their time."""
    profile = run_once("at_rest", capture="own")
    of_mover = profile.of_task("mover")
    assert profile.names([s for s in of_mover if s.state == "waiting"]) == {
        ("<module>", "start_target", "main", "mover", "before", "sleep"),
        ("<module>", "start_target", "main", "mover", "after", "sleep"),
    }
    assert wall_seconds([s for s in of_mover if "after" in s.names]) == pytest.approx(0.3, abs=0.1)
    assert wall_seconds(of_mover) == pytest.approx(profile.report["moved"], rel=0.1)


def test_a_process_in_which_nothing_runs_costs_little(run_once: RunTarget) -> None:
    """Its tasks are not read again: two thousand of them would take two milliseconds a tick and more."""
    profile = run_once("at_rest", capture="own")
    assert profile.stats["tasks_visited"] < 0.2 * 2_000 * profile.stats["ticks"]
    assert profile.stats["sampler_cpu_seconds"] / profile.stats["ticks"] < 1e-3


# More threads than a tick may look at: a hundredth of the budget that all of them would take.
IN_TURN = {"capture": "own", "rate": 1000, "cpu_budget": 0.01}


def test_threads_looked_at_in_turn_each_have_the_whole_time(run_once: RunTarget) -> None:
    """Those that wait, and one that works and sleeps in a frame that is the same at every look."""
    profile = run_once("threads_in_turn", **IN_TURN)
    assert profile.stats["threads_seen"] < 75 * profile.stats["ticks"], "all threads were looked at in each tick"
    for name in [*(f"waits {number}" for number in range(150)), "nap_and_work", "work_in_bursts"]:
        samples = [sample for sample in profile.all_samples if sample.thread_name == name]
        assert wall_seconds(samples) == pytest.approx(profile.wall, rel=0.1), name


def test_a_thread_that_begins_to_work_is_seen_at_once_whoevers_turn_it_is(run_once: RunTarget) -> None:
    """It holds the interpreter's lock; what it has waited before stays time of waiting."""
    profile = run_once("threads_in_turn", **IN_TURN)
    working = [s for s in profile.samples if s.thread_name == "work_in_bursts" and s.state == "running"]
    assert wall_seconds(working) == pytest.approx(profile.report["bursts"], rel=0.3)
