"""What the end of an interval costs the application."""

from assertions import RunTarget


def test_collecting_ten_thousand_samples_leaves_the_lock_to_others(run_once: RunTarget) -> None:
    """The best of several collections, beside the best of as many sleeps: on a busy machine, any thread is stopped."""
    profile = run_once("collection", capture="own")
    assert all(count >= 10_000 for count in profile.report["samples"]), profile.report
    assert min(profile.report["longest_pauses"]) < min(profile.report["of_sleeps"]) + 0.002, profile.report
