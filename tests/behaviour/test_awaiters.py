"""A task stands on the task that awaits it, however it is awaited."""

import sys

import pytest
from assertions import GROUP_END, RunTarget, wall_seconds

NEXT_ONE = (
    "_AsCompletedIterator._wait_for_one" if sys.version_info >= (3, 13) else "as_completed.<locals>._wait_for_one"
)


def test_a_directly_awaited_task_stands_on_every_coroutine_of_its_awaiters(run: RunTarget) -> None:
    """B3: three tasks in a row give one stack, that of the last one."""
    profile = run("await_task")
    assert profile.waiting() == profile.expect_waiting("Task-1: main > trunk | branch: branch | leaf: leaf > sleep")


def test_gathered_tasks_and_coroutines_stand_on_the_gathering_coroutine(run: RunTarget) -> None:
    """B4, B5, B6: the gathering task itself gives no sample (R4)."""
    profile = run("gather")
    assert profile.waiting() == profile.expect_waiting(
        "Task-1: main > collect | task: by_task > sleep",
        "Task-1: main > collect | coroutine: by_coroutine > sleep",
        "Task-1: main > collect | deep: deep > deeper > deepest > sleep",
    )


def test_nested_gathers_show_all_four_levels(run: RunTarget) -> None:
    """B7."""
    profile = run("gather_nested")
    above = "Task-1: main | first: first > second | third: third"
    assert profile.waiting() == profile.expect_waiting(
        f"{above} | left: fourth > rest > sleep",
        f"{above} | right: fourth > rest > sleep",
    )


def test_tasks_in_wait_stand_on_its_caller_with_the_set_by_position_or_keyword(run: RunTarget) -> None:
    """B8, B24: wait's own two coroutines are part of the stack."""
    profile = run("wait")
    assert profile.waiting() == profile.expect_waiting(
        "Task-1: main | by position: by_position > wait > _wait | position 0: leaf > sleep",
        "Task-1: main | by position: by_position > wait > _wait | position 1: leaf > sleep",
        "Task-1: main | by keyword: by_keyword > wait > _wait | keyword 0: leaf > sleep",
        "Task-1: main | by keyword: by_keyword > wait > _wait | keyword 1: leaf > sleep",
    )


def test_tasks_in_as_completed_stand_on_the_coroutine_that_waits_for_the_next_one(run: RunTarget) -> None:
    """B9: tasks and coroutines in mixed order."""
    profile = run("as_completed")
    above = f"Task-1: main > {NEXT_ONE} > Queue.get"
    assert profile.waiting() == profile.expect_waiting(
        *(f"{above} | answer {number}: answer > rest > sleep" for number in range(10))
    )


def test_as_completed_still_gives_results_in_the_order_of_time(run: RunTarget) -> None:
    """B9: profiling changes nothing in the program."""
    assert run("as_completed_quick", capture="whole").report["order"] == list(range(10))


def test_shielded_tasks_stand_on_the_task_behind_the_shield(run: RunTarget) -> None:
    """B10: shields in a gather, and a shield awaited directly."""
    profile = run("shield")
    assert profile.waiting() == profile.expect_waiting(
        *(f"Task-1: main | guarded {number}: guarded > rest > sleep" for number in range(5)),
        "Task-1: main | alone: alone | guarded 5: guarded > rest > sleep",
    )


def test_wait_for_stands_between_its_caller_and_what_it_waits_for(run: RunTarget) -> None:
    """B24: CPython 3.11 makes a task of the coroutine, later ones await it in place."""
    profile = run("wait_for")
    inline = "Task-1: main | of coroutine: of_coroutine > wait_for > slow_coroutine > slow > sleep"
    in_task = "Task-1: main | of coroutine: of_coroutine > wait_for | slow coroutine: slow_coroutine > slow > sleep"
    assert profile.waiting() == profile.expect_waiting(
        inline if sys.version_info >= (3, 12) else in_task,
        "Task-1: main | of task: of_task > wait_for | slow: slow > sleep",
    )


def test_timeouts_add_neither_task_nor_frame(run: RunTarget) -> None:
    """B12."""
    profile = run("timeouts")
    assert profile.waiting() == profile.expect_waiting(
        *(f"Task-1: main | limited {number}: limited > rest > sleep" for number in (0, 2, 4)),
        *(f"Task-1: main | limited {number}: limited_until > rest > sleep" for number in (1, 3)),
    )


def test_members_of_a_task_group_stand_on_the_task_that_owns_the_group(run: RunTarget) -> None:
    """B11: an owner that still works inside its group gives its own stack as well."""
    profile = run("task_group")
    owner = " > ".join(("with_group", *GROUP_END))
    assert profile.waiting() == profile.expect_waiting(
        *(f"Task-1: main | group {number}: {owner} | member {number}: member > rest > sleep" for number in range(5)),
        "Task-1: main | inside: still_inside > rest > sleep",
        "Task-1: main | inside: still_inside > rest > sleep | member 5: member > rest > sleep",
    )


def test_a_child_that_nobody_awaits_and_no_span_binds_is_its_own_root(run: RunTarget) -> None:
    """R5, WS8: whichever call made it; the awaited one beside them stands on its parent."""
    profile = run("unawaited")
    assert profile.waiting() == profile.expect_waiting(
        "create_task: child > sleep",
        "loop.create_task: child > sleep",
        "ensure_future: child > sleep",
        "Task: child > sleep",
        "Task-1: main > parent | awaited: child > sleep",
    )


def test_a_task_awaited_by_two_stands_on_both(run: RunTarget) -> None:
    """R3: both stacks, never a mixture."""
    profile = run("two_awaiters")
    assert profile.waiting() == profile.expect_waiting(
        "Task-1: main | one: one | shared: shared > sleep",
        "Task-1: main | two: two | shared: shared > sleep",
    )


def test_a_task_awaited_by_two_splits_its_time_equally(run: RunTarget) -> None:
    """R3."""
    profile = run("two_awaiters")
    of_one = profile.with_function("one")
    assert wall_seconds(of_one) == pytest.approx(wall_seconds(profile.of_task("shared")) / 2, rel=0.05)


def test_tasks_that_await_each_other_end_the_chain_once_round(run: RunTarget) -> None:
    """R10, B22: the leaf stands on the pair, each member once."""
    profile = run("cycle")
    assert profile.waiting() == profile.expect_waiting(
        "Task-1: main > sleep",
        "ping: ping | pong: pong | leaf: leaf > sleep",
    )


def test_tasks_that_wait_for_a_hand_off_show_the_waiting_primitive(run: RunTarget) -> None:
    """Event, queue, lock, condition and a plain future are no tasks: each waiter has its own stack."""
    profile = run("hand_off")
    assert profile.waiting() == profile.expect_waiting(
        "Task-1: main | event: for_event > Event.wait",
        "Task-1: main | queue: for_queue > Queue.get",
        "Task-1: main | lock: for_lock > _ContextManagerMixin.__aenter__ > Lock.acquire",
        "Task-1: main | condition: for_condition > Condition.wait",
        "Task-1: main | future: for_future",
    )
