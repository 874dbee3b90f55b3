"""What the end of an interval costs the application."""

from assertions import RunTarget


def test_while_ten_thousand_samples_are_collected_other_threads_go_on(run_once: RunTarget) -> None:
    """The best of several collections, beside the best of as many sleeps: on a busy machine, any thread is stopped."""
    profile = run_once("collection", capture="own")
    assert all(count >= 10_000 for count in profile.report["samples"]), profile.report
    assert max(profile.report["at_work"]) > 0.5 * max(profile.report["at_work_beside_a_sleep"]), profile.report
