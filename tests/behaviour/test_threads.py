"""Threads: pools, plain threads, callbacks, and loops in several threads."""

from assertions import IN_POOL, RunTarget, render


def test_a_pool_job_has_its_threads_own_stack(run: RunTarget) -> None:
    """B1, B25, R9: by to_thread and by run_in_executor, on Python's own lines."""
    profile = run("pool_jobs", capture="own")
    assert profile.threads_burning() == profile.python_threads("thread_running")
    assert profile.names(profile.with_function("burn")) == {(*IN_POOL, "job", "burn"), (*IN_POOL, "other_job", "burn")}


def test_a_task_that_waits_for_a_pool_job_shows_where_it_awaits(run: RunTarget) -> None:
    """B25: the job itself is in another thread and stands on nobody."""
    profile = run("pool_jobs", capture="own")
    expected = profile.expect_waiting(
        "Task-1: main | to_thread: in_thread > to_thread",
        "Task-1: main | run_in_executor: in_executor",
    )
    seen = profile.waiting()
    assert {name: seen[name] for name in expected} == expected


def test_an_idle_pool_thread_is_seen_waiting_for_work(run: RunTarget) -> None:
    """R9: after the jobs nothing of them is left in its stack."""
    profile = run("pool_jobs", capture="own")
    assert ("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", "_worker") in profile.names(
        sample for sample in profile.samples if sample.thread_name == "pool_0" and sample.state == "waiting"
    )


def test_waiting_threads_have_pythons_own_stack(run: RunTarget) -> None:
    """R9: on an event, a lock, a queue and in sleep."""
    profile = run("plain_threads")
    python, seen = profile.python_threads("threads"), profile.threads_waiting()
    del python["MainThread"], seen["MainThread"]
    assert seen == python
    assert set(seen) == {"on_event", "on_lock", "on_queue", "on_sleep"}


def test_an_idle_loop_thread_shows_its_machinery_once_and_without_a_task(run: RunTarget) -> None:
    """R9: besides the tasks that are suspended on it."""
    profile = run("plain_threads")
    assert profile.threads_waiting()["MainThread"] == {render(map(tuple, profile.report["idle loop"]))}


def test_our_own_threads_are_never_in_the_profile(run: RunTarget) -> None:
    """Neither the sampler nor the export."""
    profile = run("plain_threads")
    assert {sample.thread_name for sample in profile.all_samples} == {
        "MainThread",
        "on_event",
        "on_lock",
        "on_queue",
        "on_sleep",
    }


def test_a_callback_has_the_threads_stack_and_no_task(run: RunTarget) -> None:
    """R9, WS12: machinery included, generators and coroutines too; the sleeping task beside it keeps its own stack."""
    profile = run("callbacks", capture="own")
    assert profile.threads_burning() == profile.python_threads("thread_running")
    assert {sample.names[-2] for sample in profile.with_function("burn")} == {"burning", "by_hand", "later"}
    assert profile.waiting() == profile.expect_waiting("Task-1: main > wait > _wait | sleeper: sleeper > sleep")


def test_a_running_task_gives_no_second_sample_of_its_thread(run: RunTarget) -> None:
    """R9: work in a task is counted once."""
    profile = run("running_over_tasks", capture="own")
    assert {sample.task_name for sample in profile.with_function("burn")} == {"child"}


def test_threads_that_come_and_go_are_seen_with_whole_stacks(run_once: RunTarget) -> None:
    """B33: forty of them."""
    profile = run_once("many_threads", capture="own")
    bootstrap = ("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run")
    assert profile.names(profile.with_function("burn")) == {(*bootstrap, "work", "burn")}
    assert len(profile.threads_burning()) >= 20


def test_loops_in_two_threads_each_have_all_their_tasks(run: RunTarget) -> None:
    """B29, peers' R2: every child of both loops stands on its gathering parent and on its own thread's entry."""
    profile = run("two_loops")
    expected = {}
    for side, thread in (("first", "MainThread"), ("second", "second loop")):
        above = f"{side} main: main | {side} collector: collect"
        texts = (f"{above} | {side} {number}: child > sleep" for number in range(5))
        expected |= profile.expect_waiting(*texts, thread=thread)
    assert profile.waiting() == expected
    assert {sample.thread_name for sample in profile.samples if sample.task_name.startswith("second ")} == {
        "second loop"
    }


def test_loops_of_two_kinds_in_four_threads_look_alike(run: RunTarget) -> None:
    """WS7, WS11, B29: asyncio and uvloop side by side."""
    profile = run("four_loops")
    expected = profile.expect_waiting("main 0: main | job 0: job > sleep")
    for number in (1, 2, 3):
        expected |= profile.expect_waiting(f"main {number}: main | job {number}: job > sleep", thread=f"loop {number}")
    assert profile.waiting() == expected
