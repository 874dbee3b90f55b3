"""What users of other profilers have reported, under the numbers of our acceptance list that no other file has."""

from collections import Counter

import pytest
from assertions import GROUP_END, RunTarget, Sample, Stacks, render, wall_seconds

WAYS = ["before any loop", "inside a running loop", "from another thread"]


def test_a04_waiting_shows_without_a_recorded_span(run: RunTarget) -> None:
    """SL4: a tracer that samples nothing changes the links alone; the poller has its whole time."""
    profile = run("connection_pool", capture="own")
    unsampled = run("connection_pool_unsampled", capture="own")
    assert {sample.span_id for sample in unsampled.samples} == {0}
    for one in (profile, unsampled):
        assert {sample.task_name for sample in one.with_function("Pool.acquire")} >= {"request 1", "request 2"}
        assert {sample.task_name for sample in one.with_function("Connection.fetch")} == {
            f"request {number}" for number in range(3)
        }
        poller = one.select(lambda sample: sample.names[-2:] == ("poller", "sleep"))
        # Less than all of it where a loaded machine lets the first look wait.
        assert wall_seconds(poller) == pytest.approx(one.report["polled"], rel=0.25)


def test_a06_every_leaf_of_a_tree_of_tasks_stands_on_all_that_await_it(run: RunTarget) -> None:
    """WS3: task group, gather, wait, shield and timeout; nobody without a parent."""
    profile = run("task_tree")
    assert profile.waiting() == profile.expect_waiting(*task_tree())


def task_tree() -> list[str]:
    group = " > ".join(("Task-1: main | runner: runner", *GROUP_END))
    return [
        *(
            f"{group} | foo {number}: foo1 > foo11 > foo12 | {side} of foo {number}: foo2 > sleep"
            for number in range(3)
            for side in ("left", "right")
        ),
        "Task-1: main | waits: waits > wait > _wait | waited: leaf > sleep",
        "Task-1: main | shields: shields | shielded: leaf > sleep",
        "Task-1: main | limits: limits | limited: leaf > sleep",
    ]


@pytest.mark.parametrize("index", range(len(WAYS)), ids=WAYS)
def test_a08_all_tasks_of_four_loops_are_seen_each_in_its_thread(run: RunTarget, index: int) -> None:
    """WS7: however the profiler was started."""
    profile = run("loops_and_starts", capture="own", index=index)
    expected: Stacks = {}
    for number, thread in enumerate(["MainThread", "loop 1", "loop 2", "loop 3"]):
        texts = (f"main {number}: Loops.main | job {number}.{each}: Loops.job > Event.wait" for each in range(3))
        expected |= profile.expect_waiting(*texts, thread=thread)
    assert {name: {longest(profile.of_task(name))} for name in expected} == expected
    # A thread that has just begun is not in threading's table yet.
    named = profile.select(lambda sample: sample.task_name in expected and sample.thread_name != "")
    assert {(sample.task_name, sample.thread_name) for sample in named} == {
        (f"job {number}.{each}", "MainThread" if number == 0 else f"loop {number}")
        for number in range(4)
        for each in range(3)
    }


def longest(samples: list[Sample]) -> str:
    """The stack that most of the time went to: before all tasks rest, one may be seen that nobody awaits yet."""
    time = Counter[str]()
    for sample in samples:
        time[render(sample.frames)] += sample.wall_ns
    return max(time, key=time.__getitem__)


def test_a10_uvloop_has_the_stacks_of_asyncio(run: RunTarget, run_once: RunTarget) -> None:
    """WS11: the same frames with the same lines, whatever the loop and however tasks start."""
    assert run("task_tree").waiting() == run_once("task_tree").waiting()
