"""Both OTLP exporters against servers with TLS."""

import ssl
from concurrent import futures

import grpc
import pytest
from integration.certificates import make_certificates
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceResponse
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2_grpc import (
    ProfilesServiceServicer,
    add_ProfilesServiceServicer_to_server,
)

from otel_asyncprof.export import ProfileExportResult, otlp_grpc, otlp_http

SUCCESS, FAILURE = ProfileExportResult.SUCCESS, ProfileExportResult.FAILURE


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A key and a certificate for localhost that signs itself, for the server and for the client."""
    folder = tmp_path_factory.mktemp("tls")
    make_certificates(folder)
    return folder


@pytest.fixture
def https(receiver, files):
    """The receiver with TLS, which wants the client's certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files / "server.crt", files / "server.key")
    context.load_verify_locations(files / "client.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    receiver.tls_url = f"https://localhost:{receiver.server.server_port}"
    return receiver


@pytest.fixture
def grpcs(files):
    """The target of a gRPC server with TLS, which wants the client's certificate."""

    class Service(ProfilesServiceServicer):
        def Export(self, request, context):
            return ExportProfilesServiceResponse()

    server = grpc.server(futures.ThreadPoolExecutor(1))
    add_ProfilesServiceServicer_to_server(Service(), server)
    pair = ((files / "server.key").read_bytes(), (files / "server.crt").read_bytes())
    credentials = grpc.ssl_server_credentials([pair], (files / "client.crt").read_bytes(), require_client_auth=True)
    port = server.add_secure_port("localhost:0", credentials)
    server.start()
    yield f"https://localhost:{port}"
    server.stop(None)


def three_files(files):
    """The arguments of either exporter."""
    return {
        "certificate_file": str(files / "server.crt"),
        "client_key_file": str(files / "client.key"),
        "client_certificate_file": str(files / "client.crt"),
    }


@pytest.mark.parametrize("bundle", ["", "client.crt"])
def test_http_trusts_the_certificate_it_is_given(https, files, bundle, monkeypatch):
    """And shows its own. A variable of the HTTP library that names other certificates changes nothing."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle and str(files / bundle))
    exporter = otlp_http.OTLPProfileExporter(https.tls_url, **three_files(files))
    assert exporter.export([b"1"]) is SUCCESS
    assert https.received[0].body == b"1"


def test_http_sends_nothing_to_a_server_it_does_not_trust(https, warnings_logged):
    """It is not tried again: certificates do not heal within seconds."""
    exporter = otlp_http.OTLPProfileExporter(https.tls_url, timeout=5)
    assert exporter.export([b"1"]) is FAILURE
    assert https.received == []
    (line,) = warnings_logged()
    assert line.startswith(
        f"{https.tls_url} refused a profile, which is dropped: the certificate was not accepted (self"
    )


def test_grpc_trusts_the_certificate_it_is_given(grpcs, files):
    """And shows its own."""
    exporter = otlp_grpc.OTLPProfileExporter(grpcs, **three_files(files))
    assert exporter.export([b""]) is SUCCESS
    exporter.shutdown()


def test_grpc_sends_nothing_to_a_server_it_does_not_trust(grpcs):
    """Within the timeout."""
    exporter = otlp_grpc.OTLPProfileExporter(grpcs, timeout=1)
    assert exporter.export([b""]) is FAILURE
    exporter.shutdown()


def test_the_files_may_come_from_variables(grpcs, https, files, monkeypatch):
    """The general ones serve both protocols."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(files / "server.crt"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", str(files / "client.key"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE", str(files / "client.crt"))
    over_http, over_grpc = otlp_http.OTLPProfileExporter(https.tls_url), otlp_grpc.OTLPProfileExporter(grpcs)
    assert (over_http.export([b""]), over_grpc.export([b""])) == (SUCCESS, SUCCESS)
    over_grpc.shutdown()
