"""CPU and wall time are those of the clock, and go to who used them."""

import pytest
from assertions import RunTarget, cpu_seconds, wall_seconds

CPU = {"work_40": 0.4, "work_80": 0.8}
WALL = {"wait_60": 1.2, "wait_120": 2.4}  # each once alone and once in a task of its own


def test_cpu_time_of_each_function_is_within_a_tenth(run: RunTarget) -> None:
    """B37."""
    profile = run("known_tree", capture="whole")
    seen = {function: cpu_seconds(profile.with_function(function)) for function in CPU}
    assert seen == pytest.approx(CPU, rel=0.1)


def test_wall_time_of_each_function_is_within_a_tenth(run: RunTarget) -> None:
    """B37: parallel children count in full."""
    profile = run("known_tree", capture="whole")
    seen = {function: wall_seconds(profile.with_function(function)) for function in WALL}
    assert seen == pytest.approx(WALL, rel=0.1)


def test_the_sum_of_cpu_time_is_that_of_the_process(run: RunTarget) -> None:
    """WS12: over tasks, callbacks and threads, from the end of the profiler's start on."""
    for target, capture in (("known_tree", "whole"), ("shared_thread", "own"), ("call_storm", "own")):
        profile = run(target, capture=capture)
        used = profile.cpu - profile.stats["sampler_cpu_seconds"]
        assert cpu_seconds(profile.all_samples) == pytest.approx(used, rel=0.1)


def test_a11_work_is_charged_to_the_task_callback_or_thread_that_did_it(run: RunTarget) -> None:
    """WS12: three kinds at the same time."""
    profile = run("shared_thread", capture="own")
    seen = {name: cpu_seconds(profile.with_function(f"work_of_{name}")) for name in ("task", "callback", "thread")}
    assert seen == pytest.approx({"task": 0.36, "callback": 0.24, "thread": 0.24}, rel=0.15)
    assert {sample.task_name for sample in profile.with_function("work_of_callback")} == {""}


def test_a_sleeping_task_has_no_cpu_time(run: RunTarget) -> None:
    """WS12: whatever else its thread does."""
    profile = run("shared_thread", capture="own")
    assert cpu_seconds(profile.with_function("sleeper")) == 0


def test_every_sleeping_task_has_the_whole_wall_time(run: RunTarget) -> None:
    """WS12: fifty of them, each the time of the phase."""
    profile = run("shared_thread", capture="own")
    seen = {f"sleeper {number}": wall_seconds(profile.of_task(f"sleeper {number}")) for number in range(50)}
    assert seen == pytest.approx(dict.fromkeys(seen, profile.wall), rel=0.1)


def test_the_wall_time_of_a_task_is_its_lifetime(run: RunTarget) -> None:
    """Its own samples and the time in which it waited only for other tasks."""
    profile = run("lifetime", capture="own")
    assert wall_seconds(profile.with_function("life")) == pytest.approx(profile.report["lifetime"], rel=0.1)


def test_a_function_that_is_awaited_and_a_task_at_once_has_both_times(run: RunTarget) -> None:
    """WS17: two distinct stacks, 0.3 s in place and 0.6 s as a task."""
    profile = run("inline_and_task", capture="own")
    in_place = profile.select(lambda sample: "pause" in sample.names and sample.task_name != "task")
    assert wall_seconds(in_place) == pytest.approx(0.3, rel=0.1)
    assert wall_seconds(profile.of_task("task")) == pytest.approx(0.6, rel=0.1)
