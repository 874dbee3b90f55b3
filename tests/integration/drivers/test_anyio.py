"""anyio's task groups: a child stands on the task that is in the group, wherever its span was made."""

from __future__ import annotations

import pytest
from integration.drivers.runs import REQUEST, Caller, Link, run

PROGRAM = "anyio_groups.py"
HANDLER = ("<module>", "run", "main", "request", "repeat", "handle_request", "load_orders")
CHILDREN = {
    "find_orders": (*HANDLER, "in_group"),
    "find_prices": (*HANDLER, "in_nested_groups", "collect_prices"),
    "find_late": (*HANDLER, "in_started"),
}


@pytest.mark.parametrize("child", CHILDREN)
def test_a_child_of_a_group_leads_to_its_request(child: str) -> None:
    """Through groups in groups, and after start()."""
    seen = run(PROGRAM).seen(child, "waiting", "sleep")
    assert seen.own == (*CHILDREN[child], child)
    assert seen.link == Link("requests", "GET /orders")


def test_a_child_needs_no_span_for_that() -> None:
    """Groups are read as asyncio's own are."""
    seen = run(PROGRAM).seen("wait_alone", "waiting", "sleep")
    assert seen.own == ("<module>", "run", "main", "repeat", "in_group_without_span", "wait_alone")
    assert seen.link is None


def test_a_task_that_waits_for_its_group_gives_no_samples() -> None:
    """Its time is what its children's stacks stand on."""
    leaves = {
        function
        for sample in run(PROGRAM).samples
        if sample["state"] == "waiting" and sample["frames"][-1][0] == "TaskGroup.__aexit__"
        for function, _, _ in sample["frames"]
    }
    assert leaves == set()


def test_work_in_a_thread_has_the_span_of_its_request() -> None:
    """to_thread.run_sync() copies the context; what waits for it stands on the request."""
    program = run(PROGRAM)
    assert program.seen("burn", "running", "burn").link == REQUEST
    waiting = program.seen("in_thread", "waiting", "AsyncIOBackend.run_sync_in_worker_thread")
    assert waiting.own == (*HANDLER, "in_thread")
    assert waiting.link == REQUEST


@pytest.mark.parametrize("child", CHILDREN)
def test_the_span_of_a_slow_child_names_its_way(child: str) -> None:
    """The tasks in whose groups it is are in the stack that its span carries."""
    program = run(PROGRAM)
    expected = Caller(child, PROGRAM, program.line(f"# {child}"), (*CHILDREN[child], child))
    assert program.callers("requests", child, expected.line) == {expected}
