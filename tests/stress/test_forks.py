"""10,000 forks are a run of fork_torture.py; here is as much of it as a test may last."""

from __future__ import annotations

import pytest
from conformance import check_request
from stress.fork_torture import Outcome, torture

FORKS = {"http": 64, "grpc": 24}


@pytest.fixture(scope="module", params=FORKS)
def outcome(request: pytest.FixtureRequest) -> Outcome:
    """One run for all tests that look at it."""
    return torture(FORKS[request.param], request.param, 240)


def test_every_child_ends_as_it_wants_to(outcome: Outcome) -> None:
    """Those that end at once, that work, allocate, run a loop or fork, in whatever thread they were forked."""
    assert outcome.said["statuses"] == {"0": sum(outcome.said["statuses"].values())}
    assert "otel" not in outcome.stderr


def test_the_parent_goes_on(outcome: Outcome) -> None:
    """With all its exports, with no more threads than before, and without a gap in its samples."""
    assert outcome.said["went_on"] == [True, True, True]
    assert (outcome.said["failed_intervals"], outcome.said["new_threads"]) == (0, 0)
    assert outcome.marker_seconds() == pytest.approx(outcome.said["seconds"], rel=0.1, abs=0.5)


def test_a15_every_child_that_lives_profiles_itself(outcome: Outcome) -> None:
    """Under an instance id of its own."""
    assert outcome.silent() == set(), outcome.stderr
    instances = outcome.streams.instances()
    assert all(len(of_process) == 1 for of_process in instances.values())
    assert len(set().union(*instances.values())) == len(instances)


def test_nobody_tells_of_another_process(outcome: Outcome) -> None:
    """Neither of the parent's thousand tasks nor of its threads; nothing twice, nothing that is no profile."""
    assert outcome.strays() == {}
    ids = outcome.streams.profile_ids()
    assert len(ids) == len(set(ids))
    for requests in outcome.streams.requests.values():
        for request in requests[:3]:
            check_request(request)
