"""asyncprof.state: running, blocked, waiting and ready, each made on purpose."""

from assertions import Run, RunTarget, Sample, cpu_seconds, share, wall_seconds

RUNNING, BLOCKING = 0, 1  # the phases of four_states


def mostly(samples: list[Sample]) -> str:
    """The state that holds at least 90 % of the time of these samples."""
    for state in {sample.state for sample in samples}:
        if share([sample for sample in samples if sample.state == state], samples) >= 0.9:
            return state
    return f"none of {[(s.state, s.wall_ns) for s in samples]}"


def the_busy_task(profile: Run, function: str) -> list[Sample]:
    return profile.select(lambda sample: sample.task_name != "" and function in sample.names)


def test_a_task_on_cpu_is_running(run: RunTarget) -> None:
    """All its CPU time."""
    profile = run("four_states", capture="own", index=RUNNING)
    busy = the_busy_task(profile, "runs")
    assert cpu_seconds([sample for sample in busy if sample.state != "running"]) == 0
    assert wall_seconds([sample for sample in busy if sample.state == "running"]) >= 0.9 * cpu_seconds(busy) >= 0.24


def test_a_task_that_others_leave_no_cpu_is_running(run_once: RunTarget) -> None:
    """It makes no blocking call: nobody is to look for one."""
    profile = run_once("starved", capture="own", rate=500)
    busy = the_busy_task(profile, "works")
    assert wall_seconds(busy) >= 1.5 * cpu_seconds(busy)
    assert mostly(busy) == "running"


def test_a_task_in_a_blocking_call_is_blocked(run: RunTarget) -> None:
    """time.sleep() inside a coroutine."""
    profile = run("four_states", capture="own", index=BLOCKING)
    assert mostly(the_busy_task(profile, "blocks")) == "blocked"


def test_a_suspended_task_is_waiting_whatever_the_loop_does(run: RunTarget) -> None:
    """While another task runs, and while it blocks."""
    for index in (RUNNING, BLOCKING):
        profile = run("four_states", capture="own", index=index)
        assert {sample.state for sample in profile.of_task("waits")} == {"waiting"}


def test_a_task_that_could_run_is_ready_while_the_loop_is_busy(run: RunTarget) -> None:
    """Its event is set, but its turn has not come."""
    for index in (RUNNING, BLOCKING):
        profile = run("four_states", capture="own", index=index)
        assert {sample.state for sample in profile.of_task("could run")} == {"ready"}


def test_a_thread_off_cpu_is_waiting(run: RunTarget) -> None:
    """It has no loop that it could keep from others."""
    profile = run("four_states", capture="own", index=RUNNING)
    assert mostly(profile.with_function("thread_waits")) == "waiting"


def test_the_waiter_of_a_finished_task_is_ready_and_has_its_own_stack(run: RunTarget) -> None:
    """R4: nothing is left that it could stand under."""
    profile = run("ready_waiter", capture="own")
    assert {(s.state, s.names) for s in profile.of_task("waiter")} == {
        ("ready", ("<module>", "start_target", "main", "waiter"))
    }
    assert wall_seconds(profile.of_task("waiter")) >= 0.25


def test_a_callback_that_blocks_is_blocked_without_a_task(run: RunTarget) -> None:
    """Its thread has the loop."""
    profile = run("blocked_callback", capture="own")
    blocking = profile.select(lambda sample: sample.leaf == "blocks")
    assert mostly(blocking) == "blocked"
    assert {sample.task_name for sample in blocking} == {""}
    assert {sample.state for sample in profile.of_task("sleeper")} == {"waiting"}


def test_the_end_of_a_task_belongs_to_none_and_hides_none(run_once: RunTarget) -> None:
    """Its coroutine has ended, but the task is still its loop's current one: garbage may be collected just then."""
    profile = run_once("end_of_a_task", capture="own")
    blocking = profile.select(lambda sample: sample.leaf.endswith("slow_call_soon"))
    assert mostly(blocking) == "blocked"
    assert {sample.task_name for sample in blocking} == {""}
    assert {sample.state for sample in profile.of_task("sleeper")} == {"waiting"}
    assert wall_seconds(profile.of_task("sleeper")) >= 0.25
