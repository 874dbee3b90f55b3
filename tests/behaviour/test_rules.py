"""The rules of a stack that no other file is about: entry and machinery, eager steps, depth, lines, wrappers."""

import re
import sys
from collections.abc import Iterable

import pytest
from assertions import RunTarget

ENTRY = ("<module>", "start_target")
CONSTRUCTS = ("awaiting", "gathering", "shielding", "waiting", "limiting", "grouping", "iterating")
MACHINERY = ("Runner.run", "BaseEventLoop.run_until_complete", "BaseEventLoop.run_forever", "BaseEventLoop._run_once")
eager_only = pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with CPython 3.12")


def test_loop_frames_are_kept_when_asked_for(run_once: RunTarget) -> None:
    """R1: for a running task exactly what Python has on its stack."""
    profile = run_once("running_in_one_task", capture="own", loop_frames=True)
    entry = ("<module>", "start_target", "run", "starter")
    own = ("main", "outer", "inner_1", "inner_2", "inner_3", "sync_outer", "sync_inner", "burn")
    assert profile.names(s for s in profile.samples if s.leaf == "burn") == {(*entry, *MACHINERY, "Handle._run", *own)}


def test_uvloops_own_frames_are_left_out(run_once: RunTarget) -> None:
    """R1, B28: its run() wraps the main coroutine in another; its policy does not."""
    for index, starter in enumerate(["by_run", "by_policy"]):
        profile = run_once("uvloop_run", capture="own", index=index)
        assert profile.names(profile.of_task("leaf")) == {(*ENTRY, "run", starter, "main", "leaf", "sleep")}


def test_a_first_step_stands_on_the_creator(run: RunTarget, loop_kind: str) -> None:
    """R1: an eager one on its creator's stack, through create_task; another on the creator that awaits it."""
    profile = run("eager_first_step", capture="own")
    eager = (
        *ENTRY,
        "main",
        "creator",
        "create_task",
        "create_eager_task_factory.<locals>.factory",
        "child",
        "work",
        "burn",
    )
    later = (*ENTRY, "main", "creator", "child", "work", "burn")
    assert profile.names(s for s in profile.samples if s.leaf == "burn") == {eager if loop_kind == "eager" else later}


def test_a_task_after_its_eager_step_stands_on_its_awaiter_alone(run: RunTarget) -> None:
    """R2: nothing of the creating call is left."""
    profile = run("eager_first_step", capture="own")
    waiting = profile.select(lambda sample: sample.state == "waiting" and "child" in sample.names)
    assert profile.names(waiting) == {(*ENTRY, "main", "creator", "child", "sleep")}


@eager_only
def test_an_eager_step_inside_another_shows_both_creators(run: RunTarget, loop_kind: str) -> None:
    """R1: a member of a task group gathers a coroutine; both work at once."""
    if loop_kind != "eager":
        pytest.skip("about eager tasks")
    profile = run("eager_group", capture="own")
    [stack] = profile.names(sample for sample in profile.samples if sample.leaf == "burn")
    factory = "create_eager_task_factory.<locals>.factory"
    ensure = "ensure_future"
    member = (*ENTRY, "main", "TaskGroup.create_task", factory, "child")
    assert stack == (*member, "gather", ensure, factory, "grandchild", "work", "burn")


def test_what_an_instrumentation_puts_in_between_is_left_out(run: RunTarget) -> None:
    """R6: in place and as a task of its own; it stays where it is the leaf itself."""
    profile = run("instrumented")
    assert {task: profile.names(profile.of_task(task)) for task in ("in place", "fetch", "as leaf")} == {
        "in place": {(*ENTRY, "main", "in_place", "fetch", "sleep")},
        "fetch": {(*ENTRY, "main", "in_gather", "in_task", "fetch", "sleep")},
        "as leaf": {(*ENTRY, "main", "as_leaf", "traced_leaf")},
    }


@pytest.mark.parametrize("limit", [128, 512])
def test_both_ends_of_a_deep_stack_are_kept(run_once: RunTarget, limit: int) -> None:
    """R7, B36: 300 frames and more, at most so many of them, with one mark in the middle when some are missing."""
    profile = run_once("deep_recursion", capture="own", max_frames=limit)
    running = (*ENTRY, "main", *["dive"] * 301, "burn")
    suspended = (*ENTRY, "suspended", *["descend"] * 301, "sleep")
    seen_running = profile.names(sample for sample in profile.samples if sample.leaf == "burn")
    seen_suspended = profile.names(profile.of_task("suspended"))
    assert seen_running == {cut(running, seen_running, limit)}
    assert seen_suspended == {cut(suspended, seen_suspended, limit)}


def cut(whole: tuple[str, ...], seen: set[tuple[str, ...]], limit: int) -> tuple[str, ...]:
    """The whole stack, or when it is too long that stack without its middle, which the only one seen has marked."""
    if len(whole) <= limit:
        return whole
    [stack] = seen
    root = stack.index("<frames omitted>")
    assert len(stack) <= limit + 1
    assert min(root, len(stack) - root - 1) >= limit // 4
    return (*whole[:root], "<frames omitted>", *whole[root + 1 - len(stack) :])


def test_a12_lines_are_right_however_far_and_in_whatever_statement(run_once: RunTarget) -> None:
    """WS13, R8: lines 1, 305 and 40,999, in calls over several lines and in a finally."""
    profile = run_once("far_lines", capture="own")
    assert profile.burning() == profile.python_burning()
    lines = {
        frame[2:] for sample in profile.with_function("burn") for frame in sample.frames if "/generated/" in frame[1]
    }
    assert lines == {(1, 1), (305, 300), (40_999, 40_000)}


def test_clean_up_after_a_cancellation_and_a_timeout_keeps_its_stack(run: RunTarget) -> None:
    """WS18: throw() enters a coroutine from another side."""
    profile = run("thrown_into", capture="own")
    assert profile.burning() == profile.expect_burning(
        "Task-1: main > wait > _wait | cancelled: holder > patient > clean_up > burn",
        "Task-1: main > holder > patient > clean_up > burn",
    )


def test_a05_no_frame_of_the_running_task_appears_under_a_sleeping_one(run: RunTarget) -> None:
    """WS1, B20, B21: no mixture, and work only in its own task."""
    profile = run("ping_pong", capture="own")
    mixed = profile.select(lambda sample: "math" in sample.names and "waits" in sample.names)
    assert mixed == []
    # A task from a factory gets its name after an eager first step.
    assert {re.sub(r"^Task-\d+$", "worker", s.task_name) for s in profile.with_function("math")} == {"worker"}
    assert profile.names(profile.with_function("waits")) == {(*ENTRY, "main", "waits", "sleep")}


def test_every_stack_of_a_storm_of_calls_has_the_right_root(run_once: RunTarget) -> None:
    """WS14: deep recursion and generators that return at once; nothing torn is let through."""
    profile = run_once("call_storm", capture="own", rate=1000, max_frames=512)
    stacks = profile.names(profile.with_function("storm"))
    assert {names[:4] for names in stacks} == {(*ENTRY, "main", "storm")}
    for names in stacks:
        below = [name for name in names[4:] if name not in ("phase.__enter__", "phase.__exit__")]
        assert below == sorted(below, key=["storm", "fall", "spin", "yielding"].index)


def test_the_stats_account_for_every_tick_and_every_drop(run_once: RunTarget) -> None:
    """R8: how often was looked, how many reads faulted, and why samples were dropped."""
    stats = run_once("call_storm", capture="own", rate=1000, max_frames=512).stats
    assert stats["ticks"] >= 100
    assert stats["faults"] >= 0
    assert all(count > 0 for count in stats["drops"].values())
    assert stats["sampler_cpu_seconds"] > 0


def test_a_task_that_ends_while_it_is_looked_at_is_no_callback(run_once: RunTarget) -> None:
    """It stands on those that await it, without the loop's machinery, or is not shown at all."""
    profile = run_once("last_steps", capture="own", rate=1000, max_frames=8, sample_attributes=["asyncprof.state"])
    looked_at = profile.names(profile.select(lambda sample: sample.leaf == "one_step"))
    assert ("<module>", "start_target", "run", "<frames omitted>", "run", "main", "several", "one_step") in looked_at
    assert {names for names in looked_at if "Handle._run" in names} == set()


def numbered(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for name in names if (found := re.fullmatch(r"([a-z]+)_(\d+)", name))]


def test_no_sample_mixes_tasks_that_had_one_address(run_once: RunTarget) -> None:
    """Frames, names, awaiting tasks and spans are of one kind, also when the next task has the memory of the last."""
    profile = run_once("bound_tasks", capture="own", rate=1000)
    looked_at = profile.select(lambda sample: bool(numbered(sample.names)))
    assert {numbered(sample.names)[0][0] for sample in looked_at} >= set(CONSTRUCTS)
    mixed = []
    for sample in looked_at:
        assert sample.task_name
        # A task may still have the name Task-N, which create_task() gives it first.
        kinds = {kind for _, kind in numbered([*sample.names, sample.task_name])}
        is_stranger = "main" in sample.names and numbered(sample.names)[0][0] not in CONSTRUCTS
        if is_stranger or kinds != {str(profile.report["kinds"].get(str(sample.span_id)))}:
            mixed.append((sample.task_name, sample.names, sample.span_id))
    assert mixed == []
