"""R5: a child that nobody awaits stands on the task in which its span was activated, while that span goes on there."""

import pytest
from assertions import Run, RunTarget, render


def waiting_in(profile: Run, task: str, leaf: str) -> set[str]:
    """The stacks of a task from when it and its parent had come to rest: eager children do so before their parent."""
    samples = [sample for sample in profile.of_task(task) if sample.state == "waiting" and sample.leaf == leaf]
    unsettled = {"parent", "ended"}
    settled = {"Queue.get", "Event.wait"}
    return {render(s.frames) for s in samples if not unsettled & set(s.names) or settled & set(s.names)}


@pytest.mark.parametrize("way", ["create_task", "loop.create_task", "ensure_future", "Task"])
def test_a_child_made_in_any_way_stands_on_the_task_of_its_span(run: RunTarget, way: str) -> None:
    """Peers' R8: the parent waits for something else meanwhile."""
    profile = run("children_of_a_span", capture="own")
    assert (
        waiting_in(profile, way, "sleep")
        == profile.expect_waiting(f"parent: parent > Queue.get | {way}: child > sleep")[way]
    )


def test_a_child_with_a_span_of_its_own_stands_on_the_task_of_the_span_around(run: RunTarget) -> None:
    """Its own span is activated in itself."""
    profile = run("children_of_a_span", capture="own")
    expected = profile.expect_waiting("parent: parent > Queue.get | own span: child_with_span > sleep")
    assert waiting_in(profile, "own span", "sleep") == expected["own span"]


def test_a_parent_that_awaits_no_child_gives_its_own_stack(run: RunTarget) -> None:
    """R4 speaks of tasks that wait only for tasks."""
    profile = run("children_of_a_span", capture="own")
    assert waiting_in(profile, "parent", "Queue.get") == profile.expect_waiting("parent: parent > Queue.get")["parent"]


@pytest.mark.parametrize("child", ["ended", "gone", "moved on"])
def test_a_child_whose_span_has_ended_or_whose_parent_is_gone_is_its_own_root(run: RunTarget, child: str) -> None:
    """Never another task, such as one at a reused address or with another request."""
    profile = run("orphans_of_a_span", capture="own")
    assert waiting_in(profile, child, "sleep") == profile.expect_waiting(f"{child}: child > sleep")[child]


def test_a_parent_that_left_its_span_gives_its_own_stack(run: RunTarget) -> None:
    """With and without a next span."""
    profile = run("orphans_of_a_span", capture="own")
    for parent in ("ended", "moved_on"):
        expected = profile.expect_waiting(f"parent of {parent}: {parent} > Event.wait")
        assert waiting_in(profile, f"parent of {parent}", "Event.wait") == expected[f"parent of {parent}"]


def test_what_a_loop_runs_stands_on_the_code_that_started_the_loop(run_once: RunTarget) -> None:
    """In a worker thread, with the span of the task that made the thread work: the synchronous caller is the answer."""
    profile = run_once("loop_in_a_worker", capture="own")
    stacks = profile.names([s for s in profile.with_function("query") if s.state == "waiting"])
    assert {names[names.index("repository") :] for names in stacks} == {("repository", "query", "sleep")}
    assert {names[0] for names in stacks} == {"Thread._bootstrap"}
