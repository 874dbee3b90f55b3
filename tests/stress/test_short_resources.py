"""RLIMIT_AS and RLIMIT_NOFILE leave a start next to nothing: one line at most, and the process goes on."""

from __future__ import annotations

from stress.interposed import run_program

REFUSED = "otel_asyncprof does not profile this process: "


def test_a_start_with_little_space_or_few_descriptors_left_ends_and_leaves_nothing() -> None:
    """Also where a thread begins and finds no room for its first frame, so that nobody tells who waits for it."""
    found = run_program("short_resources.py")["found"]
    assert [(each["kind"], each["amount"], each["status"]) for each in found if each["status"]] == []
    assert [each for each in found if each["left"]] == []
    refused = [each["said"] for each in found if not each["started"]]
    assert [said for said in refused if len(said) != 1 or not said[0].startswith(REFUSED)] == []
    assert [each for each in found if each["started"] and len(each["said"]) > 1] == []
    ample = {each["kind"]: (each["started"], each["said"]) for each in found}  # the last of each kind
    assert ample == {"space": (True, []), "descriptors": (True, [])}
