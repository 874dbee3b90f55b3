"""Within one task: await chains and synchronous calls, frame by frame, each on the line Python executes."""

import sys

from assertions import RunTarget

INLINED_COMPREHENSIONS = sys.version_info >= (3, 12)


def test_a07_suspended_async_generators_do_not_cut_the_stack(run: RunTarget) -> None:
    """B14, R6, WS4: driven by async for, comprehension, anext, asend, athrow, aclose and an asynccontextmanager."""
    profile = run("async_generators")
    nested = "numbers > inner_numbers > dependency > sleep"
    comprehension = (
        "in_comprehension" if INLINED_COMPREHENSIONS else "in_comprehension > in_comprehension.<locals>.<listcomp>"
    )
    assert profile.waiting() == profile.expect_waiting(
        f"Task-1: main | for: in_for > {nested}",
        f"Task-1: main | comprehension: {comprehension} > {nested}",
        f"Task-1: main | next: in_next > {nested}",
        f"Task-1: main | next with default: in_next_with_default > {nested}",
        f"Task-1: main | send: in_send > {nested}",
        "Task-1: main | throw: in_throw > stubborn > dependency > sleep",
        "Task-1: main | close: in_close > stubborn > dependency > sleep",
        "Task-1: main | manager: in_manager > _AsyncGeneratorContextManager.__aexit__ > resource > dependency > sleep",
    )


def test_awaitables_that_are_no_coroutines_are_followed(run: RunTarget) -> None:
    """R6: an iterator written in Python has no frame while it is suspended, so its stack ends at the await."""
    profile = run("awaitables")
    assert profile.waiting() == profile.expect_waiting(
        "Task-1: main | generator: waits > ByGenerator.__await__ > dependency > sleep",
        "Task-1: main | coroutine: waits > dependency > sleep",
        "Task-1: main | iterator: waits",
        "Task-1: main | old style: waits > old_style > older",
        "Task-1: main | partial: waits > dependency > sleep",
        "Task-1: main | future: waits",
    )


def test_async_with_shows_its_own_line_on_the_way_in_and_out(run: RunTarget) -> None:
    """B15, WS13: and the body's line in its body."""
    profile = run("context_managers")
    assert profile.waiting() == profile.expect_waiting(
        "Task-1: main | enter: work > Manager.__aenter__ > enter > sleep",
        "Task-1: main | body: work > body > sleep",
        "Task-1: main | exit: work > Manager.__aexit__ > leave > sleep",
        "Task-1: main | second enter: work_in_two > Manager.__aenter__ > enter > sleep",
        "Task-1: main | second exit: work_in_two > Manager.__aexit__ > leave > sleep",
    )


def test_work_five_awaits_deep_shows_every_frame_once(run: RunTarget) -> None:
    """B16, B17, WS2: below the synchronous functions that started the loop."""
    profile = run("running_in_one_task", capture="own")
    assert profile.burning() == profile.expect_burning(
        "Task-1: main > outer > inner_1 > inner_2 > inner_3 > sync_outer > sync_inner > burn"
    )
    entry = ("<module>", "start_target", "run", "starter")
    assert {sample.names[: len(entry)] for sample in profile.with_function("burn")} == {entry}


def test_work_over_task_boundaries_stands_on_the_awaiting_tasks(run: RunTarget) -> None:
    """B18."""
    profile = run("running_over_tasks", capture="own")
    assert profile.burning() == profile.expect_burning(
        "Task-1: main > outer | middle: inner_1 | child: inner_2 > inner_3 > sync_work > burn"
    )


def test_work_in_running_generators_stands_on_those_who_drive_them(run: RunTarget) -> None:
    """B14, B34, R6: the same frames as Python's own stack."""
    profile = run("running_generators", capture="own")
    listcomp = "" if INLINED_COMPREHENSIONS else "main.<locals>.<listcomp> > "
    assert profile.burning() == profile.expect_burning(
        "Task-1: main > numbers > inner_numbers > burn",
        f"Task-1: main > {listcomp}numbers > inner_numbers > burn",
        "Task-1: main > first > second > third > burn",
        "Task-1: main > Awaitable.__await__ > burn",
    )


def test_every_kind_of_call_has_its_qualified_name(run_once: RunTarget) -> None:
    """B35: class and static methods, lambdas, comprehensions, decorated functions and finalizers."""
    profile = run_once("running_calls", capture="own")
    dictcomp = "" if INLINED_COMPREHENSIONS else "calls.<locals>.<dictcomp> > "
    expected = profile.expect_burning(
        "Task-1: main > calls > Worker.of_class > burn",
        "Task-1: main > calls > Worker.of_static > burn",
        "Task-1: main > calls > decorated.<locals>.wrapper > plain > burn",
        "Task-1: main > calls > calls.<locals>.<lambda> > burn",
        f"Task-1: main > calls > {dictcomp}burn",
        "Task-1: main > calls > calls.<locals>.<genexpr> > burn",
        "Task-1: main > calls > Worker.__del__ > burn",
    )
    assert expected["Task-1"] <= profile.burning()["Task-1"]


def test_frames_on_both_sides_of_a_call_from_c_are_there(run_once: RunTarget) -> None:
    """WS15: sorted, re.sub, reduce, json and ctypes call back into Python; nothing else is seen."""
    profile = run_once("running_calls", capture="own")
    assert profile.burning() == profile.python_burning()
    assert len(profile.burning()["Task-1"]) == 12
