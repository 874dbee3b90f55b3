"""The OTLP/gRPC exporter against a real gRPC server."""

import logging
import threading
import time
from concurrent import futures

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesPartialSuccess,
    ExportProfilesServiceRequest,
    ExportProfilesServiceResponse,
)
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2_grpc import (
    ProfilesServiceServicer,
    add_ProfilesServiceServicer_to_server,
)
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ResourceProfiles

from otel_asyncprof import ExporterUnavailable
from otel_asyncprof.export import ProfileExportResult, otlp_grpc

SUCCESS, FAILURE = ProfileExportResult.SUCCESS, ProfileExportResult.FAILURE
ONE = ExportProfilesServiceRequest(resource_profiles=[ResourceProfiles(schema_url="one")])


class Service(ProfilesServiceServicer):
    """Keeps what it gets; each queued function may abort the call or give the answer."""

    def __init__(self):
        self.received = []
        self.metadata = []
        self.answers = []
        self.arrived = threading.Semaphore(0)

    def Export(self, request, context):
        self.received.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        answer = self.answers.pop(0) if self.answers else None
        self.arrived.release()
        return (answer and answer(context)) or ExportProfilesServiceResponse()


def abort(code, details="sesame", trailing=()):
    """An answer that is an error."""

    def answer(context):
        context.set_trailing_metadata(trailing)
        context.abort(code, details)

    return answer


@pytest.fixture
def service():
    """A running server; its target is service.target."""
    servicer = Service()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    add_ProfilesServiceServicer_to_server(servicer, server)
    servicer.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield servicer
    server.stop(None)


@pytest.fixture
def exporter(service):
    """An exporter that sends to the service."""
    made = otlp_grpc.OTLPProfileExporter(f"http://{service.target}", timeout=5)
    yield made
    made.shutdown()


@pytest.mark.parametrize("compression", ["none", "gzip", "deflate"])
def test_a_request_arrives_as_it_is(service, compression):
    """The official service class decodes it; headers come with lower-case names."""
    exporter = otlp_grpc.OTLPProfileExporter(
        f"http://{service.target}", headers={"Authorization": "Bearer x=,"}, compression=compression
    )
    assert exporter.export([ONE.SerializeToString()]) is SUCCESS
    exporter.shutdown()
    assert service.received == [ONE]
    assert service.metadata[0]["authorization"] == "Bearer x=,"
    assert service.metadata[0]["otlp-profiles-development-version"] == "1"
    assert service.metadata[0]["user-agent"].startswith("otel-asyncprof/")


def test_the_environment_decides_what_is_not_given(service, monkeypatch):
    """An endpoint without a scheme needs to be told that it is insecure."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", service.target)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b")
    exporter = otlp_grpc.OTLPProfileExporter()
    assert exporter.export([b""]) is SUCCESS
    exporter.shutdown()
    assert service.metadata[0]["a"] == "b"


def retry_info(seconds):
    """The two places in which a receiver may say when to come back."""
    info = RetryInfo(retry_delay=Duration(nanos=int(seconds * 1e9)))
    status = Status()
    status.details.add().Pack(info)
    return [
        (("grpc-status-details-bin", status.SerializeToString()),),
        (("google.rpc.retryinfo-bin", info.SerializeToString()),),
    ]


@pytest.mark.parametrize("trailing", retry_info(0.01))
@pytest.mark.parametrize("code", ["UNAVAILABLE", "ABORTED", "RESOURCE_EXHAUSTED"])
def test_a_retryable_code_is_tried_again(service, exporter, code, trailing, warnings_logged):
    """After the time the receiver asks for."""
    service.answers.append(abort(grpc.StatusCode[code], trailing=trailing))
    assert exporter.export([ONE.SerializeToString()]) is SUCCESS
    assert service.received == [ONE, ONE]
    assert warnings_logged() == []


@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED", "PERMISSION_DENIED", "UNAUTHENTICATED", "INTERNAL"])
def test_any_other_code_is_final_for_its_request_alone(service, exporter, code, warnings_logged):
    """A message that is too large is dropped once; the next one arrives."""
    service.answers.append(abort(grpc.StatusCode[code]))
    assert exporter.export([ONE.SerializeToString(), b""]) is FAILURE
    assert len(service.received) == 2
    assert warnings_logged() == [f"http://{service.target} refused a profile, which is dropped: gRPC {code}"]


@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "INVALID_ARGUMENT"])
def test_a_receiver_that_knows_no_profiles_is_left_alone(service, exporter, code, warnings_logged):
    """One loud line; until it is asked again profiles are dropped and counted."""
    service.answers.append(abort(grpc.StatusCode[code]))
    assert exporter.export([b"", b""]) is FAILURE
    assert exporter.export([b""]) is FAILURE
    assert (len(service.received), exporter.dropped_requests) == (1, 3)
    (line,) = warnings_logged()
    assert f"gRPC {code}. It is asked again in 5 minutes" in line


def test_a_server_without_the_service_knows_no_profiles(warnings_logged):
    """What an older collector answers."""
    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    exporter = otlp_grpc.OTLPProfileExporter(f"http://127.0.0.1:{port}", timeout=5)
    assert exporter.export([b""]) is FAILURE
    exporter.shutdown()
    server.stop(None)
    assert "does not take OTLP profiles" in warnings_logged()[0]


def test_partial_success_is_counted(service, exporter, warnings_logged):
    """The request as a whole was taken."""
    partial = ExportProfilesPartialSuccess(rejected_profiles=3, error_message="sesame")
    service.answers.append(lambda context: ExportProfilesServiceResponse(partial_success=partial))
    assert exporter.export([b""]) is SUCCESS
    assert exporter.rejected_profiles == 3
    assert warnings_logged() == [f"http://{service.target} rejected 3 profiles (3 in all)"]


def test_a_closed_port_costs_the_timeout_and_one_line(warnings_logged):
    """The channel itself tries on; the exporter does not."""
    exporter = otlp_grpc.OTLPProfileExporter("http://127.0.0.1:1", timeout=0.5)
    before = time.monotonic()
    assert exporter.export([b""]) is FAILURE
    assert time.monotonic() - before < 2
    assert warnings_logged() == ["a profile could not be sent to http://127.0.0.1:1 and is dropped: gRPC UNAVAILABLE"]
    exporter.shutdown()


def test_shutdown_ends_a_call_in_progress(service):
    """The server answers only afterwards."""
    never = threading.Event()
    service.answers.append(lambda context: never.wait(10) and None)
    exporter = otlp_grpc.OTLPProfileExporter(f"http://{service.target}", timeout=10)
    results = []
    thread = threading.Thread(target=lambda: results.append(exporter.export([b""])))
    thread.start()
    assert service.arrived.acquire(timeout=5)
    exporter.shutdown()
    thread.join(3)
    assert results == [FAILURE]
    never.set()
    exporter.shutdown()
    assert exporter.export([b""]) is FAILURE


@pytest.mark.parametrize("code", ["OK", "UNAUTHENTICATED", "INVALID_ARGUMENT", "UNAVAILABLE"])
def test_no_secret_is_ever_told(service, code, caplog, capfd):
    """Neither header, nor password, nor what the receiver echoes, nor the profile itself, at any log level."""
    caplog.set_level(logging.DEBUG)
    if code != "OK":
        service.answers.append(abort(grpc.StatusCode[code], trailing=retry_info(0.9)[0]))
    exporter = otlp_grpc.OTLPProfileExporter(
        f"http://user:sesame@{service.target}", headers={"authorization": "sesame"}, timeout=0.8
    )
    exporter.export(
        [ExportProfilesServiceRequest(resource_profiles=[ResourceProfiles(schema_url="sesame")]).SerializeToString()]
    )
    exporter.shutdown()
    told = caplog.text + repr(exporter) + exporter.last_error + "".join(capfd.readouterr())
    assert len(service.received) == 1
    assert "sesame" not in told


def test_metadata_that_grpc_refuses_is_no_secret_told(service, warnings_logged, capfd):
    """The text of that error holds all headers."""
    exporter = otlp_grpc.OTLPProfileExporter(f"http://{service.target}", timeout=1)
    exporter._metadata = (("a!", "sesame"),)
    assert exporter.export([b""]) is FAILURE
    exporter.shutdown()
    assert len(warnings_logged()) == 1
    assert "sesame" not in warnings_logged()[0] + "".join(capfd.readouterr())


def test_a_user_in_an_endpoint_without_a_scheme_is_not_told_to_grpc():
    """It would be in the lines that gRPC itself writes about hosts it does not find."""
    assert otlp_grpc._target("user:sesame@host:4317") == "host:4317"
    assert otlp_grpc._target("https://user:sesame@host:4317/x") == "host:4317"
    assert otlp_grpc._target("unix:///tmp/a@b") == "unix:///tmp/a@b"


def test_a_child_of_a_fork_makes_its_own_channel(service, exporter):
    """That of the parent is kept, never closed: closing it would wait for threads the child has not."""
    parent_channel = exporter._channel
    exporter.after_fork()
    assert exporter.export([b""]) is SUCCESS
    assert exporter._channel is not parent_channel
    assert any(kept is parent_channel for kept in otlp_grpc._abandoned)
    parent_channel.close()


def test_a_certificate_that_cannot_be_read_is_told_when_the_exporter_is_made():
    """Not at the first export."""
    with pytest.raises(ExporterUnavailable, match=r"^/no/such/file cannot be read: No such file"):
        otlp_grpc.OTLPProfileExporter("https://localhost:1", certificate_file="/no/such/file")
