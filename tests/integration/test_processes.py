"""More processes than one: each tells of itself alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from conformance import check_request
from integration.applications import Ended, environment, run
from integration.collectors import COLLECTORS, Collector
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from otel_asyncprof.formats.stack_sample import StackSample, stack_samples

DETECTORS = {"OTEL_EXPERIMENTAL_RESOURCE_DETECTORS": "process,service_instance,otel"}


def attribute(resource: Resource, key: str) -> int | str:
    """The value of an attribute that a resource has."""
    value = next(each.value for each in resource.attributes if each.key == key)
    return value.int_value if value.HasField("int_value") else value.string_value


def profiles_by_process(collector: Collector) -> dict[int, list[ExportProfilesServiceRequest]]:
    """Process id -> its requests."""
    found: dict[int, list[ExportProfilesServiceRequest]] = {}
    for request in collector.profiles:
        pid = attribute(request.resource_profiles[0].resource, "process.pid")
        assert isinstance(pid, int)
        found.setdefault(pid, []).append(request)
    return found


def samples(requests: list[ExportProfilesServiceRequest]) -> list[StackSample]:
    """The samples of some requests."""
    return stack_samples(request.SerializeToString() for request in requests)


def functions(requests: list[ExportProfilesServiceRequest]) -> set[str]:
    """Every function that some requests name."""
    return {function for sample in samples(requests) for function in sample.functions}


@dataclass
class Forked:
    """What programs/forks.py delivered."""

    ended: Ended
    child_pid: int
    collector: Collector

    @property
    def parent(self) -> list[ExportProfilesServiceRequest]:
        """The profiles of the parent."""
        return profiles_by_process(self.collector)[self.ended.pid]

    @property
    def child(self) -> list[ExportProfilesServiceRequest]:
        """The profiles of the child."""
        return profiles_by_process(self.collector)[self.child_pid]


@pytest.fixture(scope="module", params=COLLECTORS)
def forked(request: pytest.FixtureRequest) -> Iterator[Forked]:
    """One run for all tests that look at it."""
    with COLLECTORS[request.param]() as collector:
        ended = run("forks.py", env=environment(collector, OTEL_ASYNCPROF_INTERVAL="0.4", **DETECTORS))
        assert ended.status == 0, ended.stderr
        child, status = map(int, ended.stdout.split())
        assert status == 5, ended.stderr
        yield Forked(ended, child, collector)


def test_parent_and_child_send_their_own_profiles(forked: Forked) -> None:
    """Nobody else does, each more than once, and nothing is said."""
    assert set(profiles_by_process(forked.collector)) == {forked.ended.pid, forked.child_pid}
    assert len(forked.parent) >= 2
    assert len(forked.child) >= 2
    assert "otel" not in forked.ended.stderr
    for request in forked.collector.profiles:
        check_request(request)


def test_each_process_sees_its_own_work_alone(forked: Forked) -> None:
    """What the parent had seen before the fork is not sent by the child."""
    ours = {"before_the_fork", "in_the_parent", "in_the_child"}
    assert functions(forked.parent) & ours == {"before_the_fork", "in_the_parent"}
    assert functions(forked.child) & ours == {"in_the_child"}


def test_each_process_has_the_resource_of_its_spans(forked: Forked) -> None:
    """Another process id and another instance id in the child, in traces as in profiles."""
    of_profiles = {
        pid: {request.resource_profiles[0].resource.SerializeToString(deterministic=True) for request in requests}
        for pid, requests in profiles_by_process(forked.collector).items()
    }
    of_traces: dict[int | str, set[bytes]] = {}
    for request in forked.collector.traces:
        resource = request.resource_spans[0].resource
        of_traces.setdefault(attribute(resource, "process.pid"), set()).add(
            resource.SerializeToString(deterministic=True)
        )
    assert of_profiles == of_traces
    instances = {
        attribute(requests[0].resource_profiles[0].resource, "service.instance.id")
        for requests in profiles_by_process(forked.collector).values()
    }
    assert len(instances) == 2


def test_a_child_is_linked_to_its_own_span(forked: Forked) -> None:
    """The span arrived from the child."""
    spans = {
        (int.from_bytes(span.trace_id), int.from_bytes(span.span_id)): span.name
        for request in forked.collector.traces
        for scope in request.resource_spans[0].scope_spans
        for span in scope.spans
    }
    stack = ("<module>", "in_the_child", "sleep")
    waiting = [sample for sample in samples(forked.child) if sample.functions == stack]
    assert {spans[sample.trace_id, sample.span_id] for sample in waiting} == {"child"}
    assert sum(sample.wall_ns for sample in waiting) / 1e9 == pytest.approx(1.5, rel=0.1)


def test_no_profile_is_sent_twice(forked: Forked) -> None:
    """Ids are of the process that gives them, even those after a fork."""
    ids = [
        profile.profile_id
        for request in forked.collector.profiles
        for profile in request.resource_profiles[0].scope_profiles[0].profiles
    ]
    assert len(ids) == len(set(ids))


def test_a_spawned_process_is_a_process_like_any_other() -> None:
    """It works, ends with its own status, and is profiled as the process that spawned it."""
    with COLLECTORS["http"]() as collector:
        ended = run("spawns.py", env=environment(collector, **DETECTORS))
    told, child, status = map(int, ended.stdout.split())
    assert (ended.status, ended.stderr) == (0, "")
    assert (told, status) == (child, 5)
    found = profiles_by_process(collector)
    assert "in_the_new_process" in functions(found[child])
    assert "in_the_new_process" not in functions(found[ended.pid])
