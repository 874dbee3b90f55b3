"""What opentelemetry-instrument alone sends from another process: traces and profiles that fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from conformance import check_request
from integration.applications import PROGRAMS, Ended, environment, run
from integration.collectors import COLLECTORS, Arrival, Collector
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otel_asyncprof.formats.stack_sample import StackSample, stack_samples

WIRES = [("http", ""), ("http", "gzip"), ("grpc", "")]


@dataclass
class Delivered:
    """What one run of programs/spans.py delivered over one wire."""

    compression: str
    ended: Ended
    arrivals: list[Arrival]
    collector: Collector

    @property
    def spans(self) -> dict[tuple[int, int], Span]:
        """Every span that arrived, by its ids."""
        return {
            (int.from_bytes(span.trace_id), int.from_bytes(span.span_id)): span
            for request in self.collector.traces
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        }

    @property
    def samples(self) -> list[StackSample]:
        """Every sample that arrived."""
        return stack_samples(request.SerializeToString() for request in self.collector.profiles)

    def span_names(self, *functions: str, state: str) -> set[str]:
        """The names of the spans that the samples of a stack are linked to, "" for none."""
        found = [sample for sample in self.samples if (sample.functions, sample.state) == (functions, state)]
        return {self.spans[sample.trace_id, sample.span_id].name if sample.span_id else "" for sample in found}


@pytest.fixture(scope="module", params=WIRES, ids=lambda wire: "-".join(filter(None, wire)))
def delivered(request: pytest.FixtureRequest) -> Iterator[Delivered]:
    """One run for all tests that look at it."""
    kind, compression = request.param
    variables = {
        "OTEL_SERVICE_NAME": "Größe",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,team=a%2Cb",
        "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS": "process,host,otel",
        "OTEL_EXPORTER_OTLP_HEADERS": "tenant=seven",
        "OTEL_ASYNCPROF_SAMPLE_ATTRIBUTES": "thread.name,asyncprof.state",
    }
    if compression:
        variables["OTEL_EXPORTER_OTLP_COMPRESSION"] = compression
    with COLLECTORS[kind]() as collector:
        ended = run("spans.py", "", env=environment(collector, **variables))
        yield Delivered(compression, ended, list(collector.arrivals), collector)


def test_the_application_does_not_notice(delivered: Delivered) -> None:
    """Its output and its status are its own."""
    assert (delivered.ended.status, delivered.ended.stdout, delivered.ended.stderr) == (0, "done\n", "")


def test_the_last_profile_arrives_once_before_the_last_spans(delivered: Delivered) -> None:
    """The end comes long before the interval is over."""
    assert [arrival.signal for arrival in delivered.arrivals] == ["profiles", "traces"]


def test_the_request_is_sent_as_asked(delivered: Delivered) -> None:
    """Compression, version of the protocol, headers of the environment."""
    headers = delivered.arrivals[0].headers
    assert headers.get("content-encoding", "") == delivered.compression
    assert headers["otlp-profiles-development-version"] == "1"
    assert headers["tenant"] == "seven"


def test_what_arrives_keeps_the_rules(delivered: Delivered) -> None:
    """Decoded by the official classes."""
    (request,) = delivered.collector.profiles
    check_request(request)


def test_profiles_and_traces_have_the_same_resource(delivered: Delivered) -> None:
    """Attribute by attribute and type by type."""
    (of_spans,) = delivered.collector.traces[0].resource_spans
    (of_profiles,) = delivered.collector.profiles[0].resource_profiles
    assert of_profiles.resource == of_spans.resource
    assert of_profiles.schema_url == of_spans.schema_url
    attributes = {each.key: each.value for each in of_profiles.resource.attributes}
    assert attributes["service.name"].string_value == "Größe"
    assert attributes["process.pid"].int_value == delivered.ended.pid


def test_every_link_names_a_span_that_arrived(delivered: Delivered) -> None:
    """In the trace it says."""
    links = {(sample.trace_id, sample.span_id) for sample in delivered.samples if sample.span_id or sample.trace_id}
    assert links
    assert links <= set(delivered.spans)


def test_a_suspended_task_is_linked_to_its_own_span(delivered: Delivered) -> None:
    """Each of the four queries waits under a span of its own, on the stack of the task that awaits it."""
    stack = ("<module>", "main", "handle", "query", "sleep")
    assert delivered.span_names(*stack, state="waiting") == {"query"}
    linked = {sample.span_id for sample in delivered.samples if sample.functions == stack}
    assert len(linked) == 4


def test_a_running_task_is_linked_to_its_own_span(delivered: Delivered) -> None:
    """Each of the two computations burns under a span of its own."""
    stack = ("<module>", "main", "handle", "burn")
    assert delivered.span_names(*stack, state="running") == {"computation"}
    assert len({sample.span_id for sample in delivered.samples if sample.functions == stack}) == 2


def test_a_frame_names_the_file_of_the_program(delivered: Delivered) -> None:
    """With the line of the def and the line that awaits."""
    awaiting = [sample.frames[-2] for sample in delivered.samples if sample.functions[-2:] == ("query", "sleep")]
    assert {(frame.file, frame.line - frame.first_line) for frame in awaiting} == {(str(PROGRAMS / "spans.py"), 2)}


def test_our_own_threads_are_in_no_profile(delivered: Delivered) -> None:
    """The application's main thread and the thread of the SDK that sends its spans are there, and nothing else."""
    names = {sample.thread_name for sample in delivered.samples}
    assert names == {"MainThread", "OtelBatchSpanRecordProcessor"}


@pytest.mark.parametrize(("end", "status"), [("exit", 3), ("error", 1), ("exit in a task", 4)])
def test_however_the_application_ends_its_status_and_output_are_its_own(end: str, status: int) -> None:
    """And the last profile arrives, once."""
    with COLLECTORS["http"]() as collector:
        ended = run("spans.py", end, env=environment(collector))
        plain = run("spans.py", end, env=environment(), launch="plain")
    assert (ended.status, ended.stdout, ended.stderr) == (status, plain.stdout, plain.stderr)
    assert plain.status == status
    assert [arrival.signal for arrival in collector.arrivals] == ["profiles", "traces"]
