"""Through a real OpenTelemetry Collector: profiles come out as they went in, joined to the traces beside them."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.applications import Ended, environment, run, run_all
from integration.certificates import make_certificates
from integration.real_collector import RealCollector, program
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from recordings import profiles, recording

from otel_asyncprof.analysis.spans import read_spans
from otel_asyncprof.formats.process_profile import process_profiles
from otel_asyncprof.formats.recording import read_recording, to_recording
from otel_asyncprof.formats.stack_sample import StackSample, stack_samples

WIRES = [("http/protobuf", ""), ("http/protobuf", "gzip"), ("grpc", ""), ("grpc", "gzip")]
QUERY = ("<module>", "main", "handle", "query", "sleep")


@dataclass
class Delivered:
    """What came out of the Collector for one application."""

    ended: Ended
    samples: list[StackSample]
    span_names: dict[tuple[int, int], str]


def settings(collector: RealCollector, protocol: str, **variables: str) -> dict[str, str]:
    """The environment of an application that sends to the Collector."""
    return environment(
        None,
        OTEL_TRACES_EXPORTER="otlp",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoints[protocol],
        OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        **variables,
    )


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Delivered]]:
    """One Collector, and an application for each wire."""
    with RealCollector(tmp_path_factory.mktemp("collector")) as collector:
        names = {wire: "-".join(wire) for wire in WIRES}
        jobs = [
            functools.partial(run, "spans.py", "", env=settings(collector, protocol, **_named(name, compression)))
            for (protocol, compression), name in names.items()
        ]
        ended = dict(zip(WIRES, run_all(*jobs), strict=True))
        out = collector.out
        assert out.wait_for(lambda: _all_arrived(collector, names.values()), 60)
        yield {wire: _of_service(collector, names[wire], ended[wire]) for wire in WIRES}
        assert any("ResourceProfiles #0" in line for line in collector.log), "its debug exporter shows profiles too"


def _named(service: str, compression: str) -> dict[str, str]:
    """The SDK's gRPC exporter knows no word for no compression."""
    variables = {"OTEL_SERVICE_NAME": service}
    return variables | ({"OTEL_EXPORTER_OTLP_COMPRESSION": compression} if compression else {})


def _service(resource: Resource, strings: Sequence[str] = ()) -> str:
    """The Collector writes attributes of profiles as references to its dictionary."""
    for each in resource.attributes:
        if (each.key or strings[each.key_strindex]) == "service.name":
            return each.value.string_value or strings[each.value.string_value_strindex]
    return ""


def _profiles_of(collector: RealCollector, service: str) -> list[ExportProfilesServiceRequest]:
    return [
        request
        for request in collector.out.profiles
        if any(
            _service(each.resource, request.dictionary.string_table) == service for each in request.resource_profiles
        )
    ]


def _spans_of(collector: RealCollector, service: str) -> dict[tuple[int, int], str]:
    return {
        (int.from_bytes(span.trace_id), int.from_bytes(span.span_id)): span.name
        for request in collector.out.traces
        for of_resource in request.resource_spans
        if _service(of_resource.resource) == service
        for of_scope in of_resource.scope_spans
        for span in of_scope.spans
    }


def _all_arrived(collector: RealCollector, services: Iterable[str]) -> bool:
    return all(_profiles_of(collector, service) and _spans_of(collector, service) for service in services)


def _of_service(collector: RealCollector, service: str, ended: Ended) -> Delivered:
    samples = stack_samples(request.SerializeToString() for request in _profiles_of(collector, service))
    return Delivered(ended, samples, _spans_of(collector, service))


@pytest.mark.parametrize("wire", WIRES, ids="-".join)
def test_profiles_pass_a_collector_and_join_the_traces(
    delivered: dict[tuple[str, str], Delivered], wire: tuple[str, str]
) -> None:
    """Each query's sample names a span that came out as well, on the stack of the task that awaits it."""
    run = delivered[wire]
    assert (run.ended.status, run.ended.stderr) == (0, "")
    links = {(sample.trace_id, sample.span_id) for sample in run.samples if sample.span_id}
    assert links <= set(run.span_names)
    queries = [sample for sample in run.samples if sample.functions == QUERY]
    assert {run.span_names[sample.trace_id, sample.span_id] for sample in queries} == {"query"}
    assert len({sample.span_id for sample in queries}) == 4


def test_a_collectors_own_code_reads_a_recording_and_what_it_writes_is_read(tmp_path: Path) -> None:
    """Line by line, as its file receiver and its file exporter do it: nothing is lost on the way there and back."""
    sent = recording()
    sent.profiles += profiles(service="other", pid=2)
    done = subprocess.run([program(), "json-lines"], input=to_recording(sent), capture_output=True, check=True)
    assert done.stdout.count(b"\n") == 3
    received = read_recording(done.stdout)
    assert read_spans(received.traces) == read_spans(sent.traces)
    assert process_profiles(received.profiles) == process_profiles(sent.profiles)


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, Path]:
    """Keys and certificates for localhost that sign themselves."""
    make_certificates(tmp_path)
    return {f"{name}_{kind}": tmp_path / f"{name}.{kind}" for name in ("server", "client") for kind in ("key", "crt")}


def test_a_collector_that_asks_for_certificates_gets_them(certificates: dict[str, Path], tmp_path: Path) -> None:
    """Both protocols, all from the usual variables; a client that cannot show one sends nothing and says so once."""
    tls = {
        "cert_file": str(certificates["server_crt"]),
        "key_file": str(certificates["server_key"]),
        "client_ca_file": str(certificates["client_crt"]),
    }
    shown = {
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificates["server_crt"]),
        "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(certificates["client_key"]),
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(certificates["client_crt"]),
    }
    hidden = {name: value for name, value in shown.items() if "CLIENT" not in name}
    # The SDK's exporter of traces takes other certificates where the HTTP library has a variable of its own.
    profiles_only = {"OTEL_TRACES_EXPORTER": "none"}
    with RealCollector(tmp_path, receiver={"tls": tls}, tls=True) as collector:
        good = [
            functools.partial(run, "spans.py", "", env=settings(collector, p) | profiles_only | shown)
            for p in collector.endpoints
        ]
        bad = [
            functools.partial(run, "spans.py", "", env=settings(collector, p) | profiles_only | hidden)
            for p in collector.endpoints
        ]
        *welcome, refused_http, refused_grpc = run_all(*good, *bad)
        assert collector.out.wait_for(lambda: len(collector.out.profiles) == 2)
    assert [(ended.status, ended.stderr) for ended in welcome] == [(0, "")] * 2
    for ended in (refused_http, refused_grpc):
        assert ended.status == 0
        [line] = [line for line in ended.lines if "a profile" in line]  # gRPC's own library has words of its own
        assert "could not be sent to https://localhost:" in line


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_collector_without_profiles_is_named_once(protocol: str, tmp_path: Path) -> None:
    """Its gate is off by default: the one line says so, the application and its traces go on."""
    with RealCollector(tmp_path, profiles=False) as collector:
        ended = run("spans.py", "", env=settings(collector, protocol))
        assert collector.out.wait_for(lambda: bool(collector.out.traces))
        assert collector.out.profiles == []
    reason = "HTTP 404 Not Found" if protocol == "http/protobuf" else "gRPC UNIMPLEMENTED"
    [line] = ended.lines
    assert f"does not take OTLP profiles of development version 1: {reason}" in line
    assert (ended.status, ended.stdout) == (0, "done\n")


def test_a_profile_that_is_too_large_for_the_collector_costs_one_line(tmp_path: Path) -> None:
    """The exporter's own limit is below the Collector's usual one; here that is set lower. It answers 400, not 413."""
    with RealCollector(tmp_path, receiver={"max_request_body_size": 500}, protocols=("http/protobuf",)) as collector:
        ended = run("spans.py", "", env=settings(collector, "http/protobuf") | {"OTEL_TRACES_EXPORTER": "none"})
    [line] = ended.lines
    assert "development version 1: HTTP 400 Bad Request" in line
