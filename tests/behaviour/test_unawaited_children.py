"""R5: a child that nobody awaits stands on the task in which its span was activated, as long as that span goes on there."""

import pytest
from assertions import RunTarget


@pytest.mark.parametrize("way", ["create_task", "loop.create_task", "ensure_future", "Task"])
def test_a_child_made_in_any_way_stands_on_the_task_of_its_span(run: RunTarget, way: str) -> None:
    """Peers' R8: the parent waits for something else meanwhile."""
    profile = run("children_of_a_span")
    assert profile.waiting()[way] == profile.expect_waiting(f"Task-1: main | parent: parent > Queue.get | {way}: child > sleep")[way]


def test_a_child_with_a_span_of_its_own_stands_on_the_task_of_the_span_around(run: RunTarget) -> None:
    """Its own span is activated in itself."""
    profile = run("children_of_a_span")
    text = "Task-1: main | parent: parent > Queue.get | own span: child_with_span > sleep"
    assert profile.waiting()["own span"] == profile.expect_waiting(text)["own span"]


def test_a_parent_that_awaits_no_child_gives_its_own_stack(run: RunTarget) -> None:
    """R4 speaks of tasks that wait only for tasks."""
    profile = run("children_of_a_span")
    assert profile.waiting()["parent"] == profile.expect_waiting("Task-1: main | parent: parent > Queue.get")["parent"]


def test_a_child_whose_span_has_ended_or_whose_parent_is_gone_is_its_own_root(run: RunTarget) -> None:
    """Never another task, such as one at a reused address or with another request."""
    profile = run("orphans_of_a_span")
    assert profile.waiting() == profile.expect_waiting(
        "ended: child > sleep",
        "gone: child > sleep",
        "moved on: child > sleep",
        "Task-1: main | parent of ended: ended > Event.wait",
        "Task-1: main | parent of moved on: moved_on > Event.wait",
    )
