"""A tick that looks at a few of the suspended tasks only: the same stacks, links and states; weights that add up."""

import math
import sys

import pytest
from assertions import GROUP_END, Run, RunTarget, cpu_seconds, wall_seconds

ENTRY = ("<module>", "start_target", "main")
NARROW = {"rate": 1000, "tasks_per_tick": 1}
NEXT_ONE = (
    "_AsCompletedIterator._wait_for_one" if sys.version_info >= (3, 13) else "as_completed.<locals>._wait_for_one"
)
STANDARD_ERRORS = 5  # a right estimate is further off once in two million runs


def waiting_stacks(profile: Run) -> set[str]:
    return set().union(*profile.waiting().values())


def expected_error(profile: Run, true_seconds: float) -> float:
    """The standard error, relative, of a time that comes from looks at tasks that are seen once at most.

    Their number is that of a Poisson process: the true time / (M x the time from tick to tick).
    """
    looks = true_seconds * profile.stats["ticks"] / (profile.stats["window"] * profile.wall)
    return 1 / math.sqrt(looks)


# The same stacks


@pytest.mark.parametrize(("target", "tasks_per_tick"), [("every_way", 8), ("awaitables", 1), ("cycle", 1)])
def test_every_way_of_waiting_gives_the_same_stacks_as_without_a_window(
    run: RunTarget, target: str, tasks_per_tick: int
) -> None:
    """R1 to R6 and R10: none is missing, none is added, an awaiter that is looked at alone gives none."""
    windowed = run(target, rate=1000, tasks_per_tick=tasks_per_tick)
    assert windowed.stats["window"] >= 4, "all tasks were looked at"
    assert waiting_stacks(windowed) == waiting_stacks(run(target, rate=1000))


def test_children_stand_on_awaiters_outside_the_window(run: RunTarget) -> None:
    """With one slot a tick, no awaiter is ever looked at together with its child."""
    profile = run("gather_nested", **NARROW)
    assert profile.stats["window"] > 1
    above = "Task-1: main | first: first > second | third: third"
    assert profile.waiting() == profile.expect_waiting(
        f"{above} | left: fourth > rest > sleep",
        f"{above} | right: fourth > rest > sleep",
    )


def test_a_task_awaited_by_two_splits_its_time_equally_under_a_window(run: RunTarget) -> None:
    """R3: neither awaiter is in the window."""
    profile = run("two_awaiters", **NARROW)
    of_one = wall_seconds(profile.with_function("one"))
    assert of_one > 0
    assert of_one == pytest.approx(wall_seconds(profile.of_task("shared")) / 2, rel=0.01)


def test_parents_of_short_lived_children_give_no_sample_of_their_own(run: RunTarget) -> None:
    """R4: also when a parent is looked at before any child of it has ever been.

    Between the last child's end and the parent's wake-up there are moments in which nothing is left to stand under.
    """
    profile = run("quick_groups", capture="own", rate=1000, tasks_per_tick=32)
    assert profile.stats["window"] > 8, "all tasks were looked at"
    waiting = profile.select(lambda s: s.state == "waiting" and s.task_name != "")
    below = (*ENTRY[:2], "lines", "line")
    children = {
        (*below, "by_gather", "child", "sleep"),
        (*below, "by_group", *GROUP_END, "child", "sleep"),
        (*below, "by_wait", "wait", "_wait", "child", "sleep"),
        (*below, "by_task", "child", "sleep"),
        (*below, "by_shield", "child", "sleep"),
    }
    assert profile.names(waiting) >= children
    alone = {(*ENTRY, "sleep"), (*ENTRY[:2], "rest", "sleep")}
    others = [(s.wall_ns / 1e9, s.names) for s in waiting if s.names not in children | alone]
    of_children = [s for s in waiting if s.names in children]
    assert sum(seconds for seconds, _ in others) <= 0.01 * wall_seconds(of_children), sorted(others)


def test_a_task_that_waits_for_plain_futures_gives_its_own_stack(run: RunTarget) -> None:
    """R4 speaks of tasks: the same constructs, told apart from the waiting side, with nothing in them to stand on."""
    profile = run("plain_futures", rate=1000, tasks_per_tick=4)
    expected = [
        "Task-1: main | directly: directly",
        "Task-1: main | gather: in_gather",
        "Task-1: main | wait: in_wait > wait > _wait",
        "Task-1: main | wait_for: in_wait_for > wait_for",
        "Task-1: main | shield: in_shield",
    ]
    if sys.version_info >= (3, 13):  # before, nothing leads from the waiting task to what it waits for
        expected.append(f"Task-1: main | as_completed: in_as_completed > {NEXT_ONE} > Queue.get")
    assert profile.waiting() == profile.expect_waiting(*expected)


@pytest.mark.parametrize("way", ["create_task", "loop.create_task", "ensure_future", "Task"])
def test_a_child_stands_on_the_task_of_its_span_outside_the_window(run: RunTarget, way: str) -> None:
    """R5: its parent is never looked at together with it. An eager parent begins in main()."""
    profile = run("children_of_a_span", capture="own", **NARROW)
    samples = profile.select(lambda s: s.task_name == way and s.state == "waiting" and s.leaf == "sleep")
    at_rest = [s for s in samples if ("parent" not in s.names or "Queue.get" in s.names) and "main" not in s.names]
    assert profile.names(at_rest) == {(*ENTRY[:2], "parent", "Queue.get", "child", "sleep")}


# What runs is always seen


def test_a_new_task_that_runs_among_thousands_is_seen_at_every_tick(run: RunTarget) -> None:
    """Its time adds up from looks that weigh one tick each; one look through the window would weigh all of it."""
    profile = run("new_among_thousands", capture="own", rate=200, tasks_per_tick=4)
    assert profile.stats["window"] > profile.stats["ticks"]
    working = profile.select(lambda s: s.task_name == "busy" and "work" in s.names)
    assert profile.names(s for s in working if s.leaf == "spin") == {(*ENTRY, "busy", "work", "spin")}
    assert wall_seconds(working) == pytest.approx(profile.report["worked"][0], rel=0.15)
    assert cpu_seconds(working) == pytest.approx(0.6, rel=0.15)


def test_a_first_step_of_a_new_task_stands_on_its_new_creator(run: RunTarget, loop_kind: str) -> None:
    """An eager one runs on its creator's stack, which is as new and as unlikely to be in the window."""
    profile = run("new_among_thousands", capture="own", index=1, rate=200, tasks_per_tick=16)
    creation = ("create_task", "create_eager_task_factory.<locals>.factory") if loop_kind == "eager" else ()
    working = profile.with_function("spin")
    assert profile.names(working) == {(*ENTRY, "parent", *creation, "child", "work", "spin")}
    assert wall_seconds(working) == pytest.approx(profile.report["worked"][1], rel=0.15)


# Links and states


def test_looked_at_alone_a_task_is_linked_to_its_own_span(run: RunTarget) -> None:
    """Its awaiter's span and its siblings' are others."""
    profile = run("two_spans", **NARROW)
    del profile.report["spans"]["root"]
    assert profile.links() == profile.expected_links()


def test_no_request_carries_a_foreign_span_under_a_window(run: RunTarget) -> None:
    """200 of them, each looked at once in a while, and linked to its innermost span."""
    profile = run("requests", capture="own", rate=1000, tasks_per_tick=64)
    assert profile.stats["tasks_seen"] > 1.5 * profile.stats["tasks_visited"]
    spans = profile.report["spans"]
    owned = [sample for sample in profile.samples if profile.owner(sample)]
    assert [s for s in owned if s.span_id not in (0, spans[profile.owner(s)])] == []
    spanned = [sample for sample in owned if spans[profile.owner(sample)]]
    assert wall_seconds([s for s in spanned if s.span_id]) >= 0.97 * wall_seconds(spanned)


def test_states_are_told_apart_under_a_window(run: RunTarget) -> None:
    """While one task runs, and while one blocks."""
    for index, function in enumerate(["runs", "blocks"]):
        profile = run("four_states", capture="own", index=index, **NARROW)
        assert {sample.state for sample in profile.of_task("waits")} == {"waiting"}
        assert {sample.state for sample in profile.of_task("could run")} == {"ready"}
        seen = wall_seconds([s for s in profile.with_function(function) if s.task_name and s.state != "waiting"])
        assert seen == pytest.approx(profile.wall, rel=0.1)


def test_a_task_ready_since_its_child_ended_has_its_own_stack_under_a_window(run: RunTarget) -> None:
    """R4: nothing is left that it could stand under."""
    profile = run("ready_waiter", capture="own", **NARROW)
    assert {(s.state, s.names) for s in profile.of_task("waiter")} == {("ready", (*ENTRY, "waiter"))}


# Weights


@pytest.mark.parametrize("index", [0, 1], ids=["at rest", "while another task runs"])
def test_the_time_of_long_waits_adds_up(run: RunTarget, index: int) -> None:
    """2,000 tasks, of which some twelve are looked at in a tick, whether or not anything changes."""
    profile = run("long_waits", capture="own", index=index, rate=1000, tasks_per_tick=64)
    assert profile.stats["window"] > 30
    resting = [s for s in profile.samples if "rest" in s.names]
    assert wall_seconds(resting) == pytest.approx(2_000 * profile.wall, rel=0.04)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="a set of tasks is not walked from end to end")
def test_the_time_after_the_last_look_at_very_many_tasks_is_not_lost(run_once: RunTarget) -> None:
    """A list is walked in every 64th tick: a profile of 1 s ends long after a walk, however late the ticks are."""
    profile = run_once("rare_looks", capture="own", rate=200, tasks_per_tick=1)
    assert profile.stats["window"] == 2_048, "all tasks were looked at"
    resting = [s for s in profile.samples if "rest" in s.names]
    assert wall_seconds(resting) == pytest.approx(profile.report["tasks"] * profile.wall, rel=0.05)


def test_the_time_of_tasks_does_not_depend_on_the_size_of_their_table(run_once: RunTarget) -> None:
    """A table of 200 tasks, of 2,000, of 8,000, and of 200 again that is as large as before.

    Those 200 were made one after the other, so that they stand side by side in it.
    """
    seen = []
    for index in range(4):
        profile = run_once("growing_and_shrinking", capture="own", index=index, rate=1000, tasks_per_tick=256)
        seen.append(wall_seconds([s for s in profile.samples if "rest" in s.names]))
    assert seen == pytest.approx(profile.report["steps"], rel=0.06)


def test_the_time_of_tasks_adds_up_while_their_table_grows(run_once: RunTarget) -> None:
    """One profile over all steps: the weights are those of each tick."""
    profile = run_once("growing_and_shrinking", capture="own", index=4, rate=1000, tasks_per_tick=256)
    resting = [s for s in profile.samples if "rest" in s.names]
    assert wall_seconds(resting) == pytest.approx(profile.report["whole"], rel=0.06)


def test_the_time_of_short_lives_is_estimated_without_bias(run_once: RunTarget) -> None:
    """A turn of the window takes far longer than any of them lives, so that most are never seen."""
    profile = run_once("short_lives", capture="own", rate=1000, tasks_per_tick=128)
    turn_seconds = profile.stats["window"] * profile.wall / profile.stats["ticks"]
    assert turn_seconds > 0.05, "each could be seen twice"
    true_seconds = profile.report["lived"]
    seen = wall_seconds([s for s in profile.samples if "brief" in s.names])
    assert seen == pytest.approx(true_seconds, rel=STANDARD_ERRORS * expected_error(profile, true_seconds))
