"""Profiles as a backend sees them: one stream for each process."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from otel_asyncprof.formats.stack_sample import StackSample, stack_samples


def attribute(resource: Resource, key: str) -> int | str:
    """The value of an attribute that a resource has."""
    value = next(each.value for each in resource.attributes if each.key == key)
    return value.int_value if value.HasField("int_value") else value.string_value


class Streams:
    """Process id -> the requests of that process."""

    def __init__(self, requests: Iterable[ExportProfilesServiceRequest]) -> None:
        self.requests: dict[int, list[ExportProfilesServiceRequest]] = {}
        for request in requests:
            pid = attribute(request.resource_profiles[0].resource, "process.pid")
            assert isinstance(pid, int)
            self.requests.setdefault(pid, []).append(request)

    @property
    def pids(self) -> set[int]:
        """Who has sent something."""
        return set(self.requests)

    def samples(self, pid: int) -> list[StackSample]:
        """The samples of a process."""
        return stack_samples(request.SerializeToString() for request in self.requests.get(pid, []))

    def functions(self, pid: int) -> set[str]:
        """Every function that the profiles of a process name."""
        return {function for sample in self.samples(pid) for function in sample.functions}

    def who_did(self, function: str) -> set[int]:
        """The processes whose profiles name a function."""
        return {pid for pid in self.pids if function in self.functions(pid)}

    def instances(self) -> dict[int, set[int | str]]:
        """Process id -> its values of service.instance.id."""
        return {
            pid: {attribute(request.resource_profiles[0].resource, "service.instance.id") for request in requests}
            for pid, requests in self.requests.items()
        }

    def profile_ids(self) -> list[bytes]:
        """The ids of all profiles."""
        return [
            profile.profile_id
            for requests in self.requests.values()
            for request in requests
            for profile in request.resource_profiles[0].scope_profiles[0].profiles
        ]
