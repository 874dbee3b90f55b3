"""Where a hypervisor steals time, a short run may show no CPU time at all: what it has changed is seen all the same."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from otlp_requests import frames_of
from stress.interposed import run_program


@pytest.fixture(scope="module")
def functions() -> set[str]:
    """Every function of the program that was seen."""
    requests = [
        ExportProfilesServiceRequest.FromString(bytes.fromhex(request))
        for request in run_program("stolen_time.py")["requests"]
    ]
    assert requests
    return {
        frame.name
        for request in requests
        for resource in request.resource_profiles
        for scope in resource.scope_profiles
        for profile in scope.profiles
        for sample in profile.samples
        for frame in frames_of(request.dictionary, sample)
    }


@pytest.mark.parametrize("kind", ["thread", "task"])
def test_what_moved_without_any_cpu_time_is_seen_again(functions: set[str], kind: str) -> None:
    """A thread at once, by the words of its state; a task when the longest time of rest is over."""
    assert {f"{kind}_before", f"{kind}_after"} <= functions
