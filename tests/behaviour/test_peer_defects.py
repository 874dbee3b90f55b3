"""What other profilers were seen to get wrong does not happen here."""

import pytest
from assertions import RunTarget, share


def test_25000_tasks_lose_no_task_data(run_once: RunTarget) -> None:
    """R1: every visited task has its whole stack."""
    profile = run_once("many_tasks", capture="own")
    suspended = profile.select(lambda sample: "rest" in sample.names)
    assert profile.names(suspended) == {("<module>", "start_target", "rest", "sleep")}
    assert profile.stats["tasks_seen"] >= 25_000
    assert len({sample.task_name for sample in suspended}) >= 1_000


def test_a_parent_that_is_alone_after_its_gathers_is_seen(run: RunTarget) -> None:
    """R3."""
    profile = run("parent_alone")
    assert profile.waiting() == profile.expect_waiting("Task-1: main > work_alone > Event.wait")


def test_workers_are_seen_for_as_long_as_they_are_alone(run: RunTarget) -> None:
    """R3: two children of 50 ms each, then 100 ms alone: half of all task time."""
    profile = run("workers_alone", capture="own")
    workers = profile.with_function("worker")
    assert share(profile.with_function("alone"), workers) == pytest.approx(0.5, abs=0.05)


def test_functions_at_a_reused_address_keep_their_own_names_and_files(run_once: RunTarget) -> None:
    """R4."""
    profile = run_once("reused_code", capture="own")
    assert profile.report["addresses"] < 10, "the addresses were not reused"
    seen = {
        (frame[0], frame[1]) for s in profile.with_function("spin") for frame in s.frames if frame[0].startswith("f_")
    }
    possible = {(f"f_{number:03}", f"/generated/file_{number:03}.py") for number in range(40)}
    assert seen <= possible
    assert len(seen) >= 38


def test_names_of_functions_files_and_tasks_are_exact_unicode(run: RunTarget) -> None:
    """R5, R8: nothing is cut, replaced or missing."""
    profile = run("exact_names", capture="own")
    assert profile.burning() == profile.python_burning(above="Task-1: main | ")
    assert set(profile.burning()) == {"task café", "task запрос", "task 検索", "task 𐐨𐐩𐐪", "task long_long_long_long_"}
