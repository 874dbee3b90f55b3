"""Every sample is linked to the span that is current in its own task or thread, or to none."""

from assertions import RunTarget, Sample, cpu_seconds, share


def test_a01_200_concurrent_requests_never_carry_a_foreign_span(run: RunTarget) -> None:
    """SL1: working and sleeping, in the request's span and in the one inside it."""
    profile = run("requests", capture="own")
    spans = profile.report["spans"]
    assert [s for s in profile.samples if profile.owner(s) and s.span_id not in (0, spans[profile.owner(s)])] == []


def test_samples_of_requests_are_linked_to_their_innermost_span(run: RunTarget) -> None:
    """At least 97 % of the suspended time and of the CPU time."""
    profile = run("requests", capture="own")
    spanned = profile.select(lambda sample: profile.report["spans"].get(profile.owner(sample), 0) != 0)
    linked = [sample for sample in spanned if sample.span_id]
    assert share(linked, spanned) >= 0.97
    assert cpu_seconds(linked) >= 0.97 * cpu_seconds(spanned)
    assert len({profile.owner(sample) for sample in linked if profile.owner(sample).startswith("fetch ")}) >= 195


def test_samples_after_a_request_have_no_link(run: RunTarget) -> None:
    """SL1: the task goes on, its span does not."""
    profile = run("requests", capture="own")
    after = profile.select(lambda sample: profile.owner(sample).startswith("after "))
    assert after
    assert {sample.span_id for sample in after} == {0}


def test_siblings_of_a_gather_carry_their_own_spans(run: RunTarget) -> None:
    """SL9, peers' R6: the one without a span of its own carries the common one."""
    profile = run("two_spans")
    del profile.report["spans"]["root"]
    assert profile.links() == profile.expected_links()


def test_a_task_beside_spanned_ones_has_no_link(run: RunTarget) -> None:
    """Nothing of a thread's other tasks is inherited."""
    profile = run("two_spans")
    assert spans_in(profile.all_samples, "outside") == {0}


def test_a02_a_pool_job_has_the_link_of_its_copied_context_only(run: RunTarget) -> None:
    """SL2, B42: to_thread is linked, run_in_executor is not, and the thread keeps nothing of the last job."""
    profile = run("span_in_pool", capture="own")
    pool = profile.select(lambda sample: sample.thread_name == "pool_0" and sample.task_name == "")
    spans = profile.report["spans"]
    assert spans_in(pool, "first_job") == {spans["first_job"]}
    assert spans_in(pool, "second_job") == {0}
    assert spans_in(pool, "third_job") == {spans["third_job"]}
    assert {sample.span_id for sample in pool if sample.leaf == "_worker"} == {0}


def test_an_ended_span_is_linked_no_more_and_no_other_in_its_place(run: RunTarget) -> None:
    """SL6: working or waiting, although an outer span still goes on."""
    profile = run("ended_spans", capture="own")
    assert {sample.span_id for sample in profile.with_function("background")} == {0}
    assert {sample.span_id for sample in profile.with_function("late_work")} == {0}
    assert {sample.span_id for sample in profile.with_function("nested_background")} == {0}


def test_remote_invalid_and_unsampled_spans_are_not_linked(run: RunTarget) -> None:
    """SL5: a local span below a remote one is."""
    profile = run("no_link_spans")
    assert {name: spans_of(profile.of_task(name)) for name in ("remote", "invalid", "unsampled")} == {
        "remote": {0},
        "invalid": {0},
        "unsampled": {0},
    }
    assert profile.links() == profile.expected_links()


def test_an_unsampled_span_is_linked_when_asked_for(run_once: RunTarget) -> None:
    """OTEL_ASYNCPROF_LINK_UNSAMPLED."""
    profile = run_once("no_link_spans", link_unsampled=True)
    assert spans_of(profile.of_task("unsampled")) == {profile.report["unsampled"]}
    assert spans_of(profile.of_task("remote")) == {0}


def test_the_local_root_is_linked_when_asked_for(run_once: RunTarget) -> None:
    """OTEL_ASYNCPROF_LINK=local_root: the first span of the trace in this process."""
    profile = run_once("local_root", capture="own", link="local_root")
    assert profile.links() == profile.expected_links()


def test_a03_an_abandoned_async_generator_leaves_no_span_behind(run: RunTarget) -> None:
    """SL3: closed in another task, collected, after an exception and after a timeout."""
    profile = run("abandoned_generators", capture="own")
    assert profile.links() == profile.expected_links()


def test_an_abandoned_async_generator_makes_us_say_nothing(run: RunTarget) -> None:
    """SL3: whatever is printed comes from OpenTelemetry itself."""
    assert "asyncprof" not in run("abandoned_generators", capture="own").stderr


def test_a_span_is_found_however_it_was_made_current(run: RunTarget) -> None:
    """attach, use_span with baggage on top, a context given to a task, a callback and a thread."""
    profile = run("context_api", capture="own")
    assert profile.links() == profile.expected_links()


def test_spans_from_before_the_start_are_linked(run: RunTarget) -> None:
    """In a waiting task, in the running one and in its child."""
    profile = run("spans_before_start", capture="own")
    del profile.report["spans"]["in_thread"]
    assert profile.links() == profile.expected_links()


def test_a_span_from_before_the_start_is_linked_in_another_thread(run: RunTarget) -> None:
    """The thread goes on waiting inside it."""
    profile = run("spans_before_start", capture="own")
    assert profile.links()["in_thread"] == profile.expected_links()["in_thread"]


def test_a04_every_waiter_of_a_connection_pool_shows_where_it_waits_for_whom(run: RunTarget) -> None:
    """SL4: acquire and fetch each under the request's own span, the poller under none."""
    profile = run("connection_pool", capture="own")
    spans = profile.report["spans"]
    expected = {(f"request {number}", spans[f"request {number}"]) for number in range(3)}
    assert {(s.task_name, s.span_id) for s in profile.with_function("Connection.fetch")} == expected
    assert {(s.task_name, s.span_id) for s in profile.with_function("Pool.acquire")} >= {
        (f"request {number}", spans[f"request {number}"]) for number in (1, 2)
    }
    assert spans_of(profile.with_function("poller")) == {0}


def test_trace_and_span_id_are_there_together_or_not_at_all(run: RunTarget) -> None:
    """A link is whole."""
    profile = run("requests", capture="own")
    assert {bool(sample.trace_id) for sample in profile.samples if sample.span_id} == {True}
    assert {bool(sample.trace_id) for sample in profile.samples if not sample.span_id} == {False}


def spans_of(samples: list[Sample]) -> set[int]:
    return {sample.span_id for sample in samples}


def spans_in(samples: list[Sample], function: str) -> set[int]:
    return {sample.span_id for sample in samples if function in sample.names}


def test_what_is_called_within_a_span_of_a_moment_is_linked_to_it(run_once: RunTarget) -> None:
    """Between two looks at the link, which are the same, the span may have come and gone. Rather none than another."""
    profile = run_once("short_spans", capture="own", rate=1000)
    span = profile.report["span"]
    assert span in spans_in(profile.all_samples, "inside") <= {span, 0}
    assert spans_in(profile.all_samples, "outside") == {0}
