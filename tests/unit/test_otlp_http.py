"""The OTLP/HTTP exporter against a real HTTP server."""

import gzip
import logging
import socket
import threading
import time
import traceback
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import requests
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesPartialSuccess,
    ExportProfilesServiceResponse,
)

from otel_asyncprof import ExporterUnavailable
from otel_asyncprof.export import ProfileExportResult, _otlp, _sdk_transport, otlp_http
from otel_asyncprof.export._sdk_transport import HttpReply

SUCCESS, FAILURE = ProfileExportResult.SUCCESS, ProfileExportResult.FAILURE


@pytest.fixture
def exporter(receiver):
    """An exporter that sends to the receiver."""
    made = otlp_http.OTLPProfileExporter(receiver.url + "/v1development/profiles", timeout=5)
    yield made
    made.shutdown()


def test_a_request_arrives_as_it_is(receiver, exporter):
    """Path, content type, version of the protocol, body."""
    assert exporter.export([b"one", b"two"]) is SUCCESS
    assert [(got.path, got.body) for got in receiver.received] == [
        ("/v1development/profiles", b"one"),
        ("/v1development/profiles", b"two"),
    ]
    headers = receiver.received[0].headers
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["otlp-profiles-development-version"] == "1"
    assert headers["user-agent"].startswith("otel-asyncprof/")
    assert "content-encoding" not in headers
    assert (exporter.delivered_requests, exporter.dropped_requests) == (2, 0)


@pytest.mark.parametrize(("compression", "restore"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_a_request_is_compressed_when_asked(receiver, compression, restore):
    """The receiver is told how."""
    exporter = otlp_http.OTLPProfileExporter(receiver.url, compression=compression)
    assert exporter.export([b"x" * 1000]) is SUCCESS
    (got,) = receiver.received
    assert got.headers["content-encoding"] == compression
    assert restore(got.body) == b"x" * 1000
    assert len(got.body) < 100


def test_the_environment_decides_what_is_not_given(receiver, monkeypatch):
    """Base URL and headers, as for the other signals."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url + "/base")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20x%3D,b=c d")
    assert otlp_http.OTLPProfileExporter().export([b"1"]) is SUCCESS
    (got,) = receiver.received
    assert got.path == "/base/v1development/profiles"
    assert (got.headers["authorization"], got.headers["b"]) == ("Bearer x=", "c d")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_retryable_status_is_tried_again(receiver, exporter, reply, status, warnings_logged):
    """After the time the receiver asks for; nobody need know."""
    receiver.replies.append(reply(status, {"retry-after": "0"}))
    assert exporter.export([b"1"]) is SUCCESS
    assert [got.body for got in receiver.received] == [b"1", b"1"]
    assert warnings_logged() == []


def test_a_date_in_retry_after_is_understood():
    """Both forms of the header, and none."""
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True)
    assert 55 < otlp_http._retry_after({"retry-after": in_a_minute}) <= 60
    assert otlp_http._retry_after({"retry-after": "7"}) == 7.0
    assert otlp_http._retry_after({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}) == 0.0
    assert otlp_http._retry_after({"retry-after": "soon"}) is None
    assert otlp_http._retry_after({}) is None


def test_a_wait_beyond_the_timeout_is_not_begun(receiver, exporter, reply, warnings_logged):
    """The request is dropped at once, with one line."""
    receiver.replies.append(reply(503, {"retry-after": "600"}))
    before = time.monotonic()
    assert exporter.export([b"1"]) is FAILURE
    assert time.monotonic() - before < 2
    assert (exporter.dropped_requests, len(receiver.received)) == (1, 1)
    assert warnings_logged() == [
        f"a profile could not be sent to {receiver.url}/v1development/profiles and is dropped: "
        "HTTP 503 Service Unavailable"
    ]


def test_the_end_of_the_process_ends_a_wait(receiver, exporter, reply):
    """finish_soon() comes from another thread."""
    receiver.replies.append(reply(503, {"retry-after": "4"}))
    results = []
    thread = threading.Thread(target=lambda: results.append(exporter.export([b"1"])))
    thread.start()
    assert receiver.arrived.acquire(timeout=5)
    exporter.finish_soon()
    thread.join(3)
    assert results == [FAILURE]
    assert len(receiver.received) == 1


@pytest.mark.parametrize("status", [400, 404])
def test_a_receiver_that_knows_no_profiles_is_left_alone_for_five_minutes(
    receiver, exporter, reply, status, warnings_logged, monkeypatch
):
    """One loud line; until then profiles are dropped and counted."""
    receiver.replies.append(reply(status))
    assert exporter.export([b"1", b"2"]) is FAILURE
    assert exporter.export([b"3"]) is FAILURE
    assert [got.body for got in receiver.received] == [b"1"]
    assert exporter.dropped_requests == 3
    (line,) = warnings_logged()
    assert line.startswith(
        f"{receiver.url}/v1development/profiles does not take OTLP profiles of development version 1"
    )
    assert f"HTTP {status}" in line
    assert "asked again in 5 minutes" in line

    now = time.monotonic()
    monkeypatch.setattr(_otlp.time, "monotonic", lambda: now + 301)
    assert exporter.export([b"4"]) is SUCCESS
    assert [got.body for got in receiver.received] == [b"1", b"4"]


@pytest.mark.parametrize("status", [301, 401, 413, 500])
def test_any_other_status_is_final_for_its_request_alone(receiver, exporter, reply, status, warnings_logged):
    """The next request is sent."""
    receiver.replies.append(reply(status, {"location": "/elsewhere"}))
    assert exporter.export([b"1", b"2"]) is FAILURE
    assert [got.body for got in receiver.received] == [b"1", b"2"]
    assert (exporter.delivered_requests, exporter.dropped_requests) == (1, 1)
    assert len(warnings_logged()) == 1


def test_partial_success_is_counted(receiver, exporter, reply, warnings_logged):
    """The request as a whole was taken."""
    rejected = ExportProfilesServiceResponse(
        partial_success=ExportProfilesPartialSuccess(rejected_profiles=2, error_message="sesame")
    )
    receiver.replies.append(reply(200, body=rejected.SerializeToString()))
    assert exporter.export([b"1"]) is SUCCESS
    assert exporter.rejected_profiles == 2
    assert warnings_logged() == [f"{receiver.url}/v1development/profiles rejected 2 profiles (2 in all)"]


def test_an_answer_that_is_no_protobuf_is_success(receiver, exporter, reply):
    """A proxy may answer with anything."""
    receiver.replies.append(reply(200, body=b"<html>\xff"))
    assert exporter.export([b"1"]) is SUCCESS
    assert exporter.rejected_profiles == 0


def test_a_lasting_failure_is_told_once(receiver, exporter, reply, warnings_logged):
    """Not at every interval; after a success it would be news again."""
    for status in (500, 500, 200, 500):
        receiver.replies.append(reply(status))
        exporter.export([b"1"])
    assert len(warnings_logged()) == 2


def test_a_closed_port_is_told_in_plain_words(warnings_logged):
    """The reason stands in the line, the URL of the error text does not."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/x"
        exporter = otlp_http.OTLPProfileExporter(url, timeout=0.5)
        assert exporter.export([b"1"]) is FAILURE
    assert warnings_logged() == [f"a profile could not be sent to {url} and is dropped: Connection refused"]


def test_a_receiver_that_never_answers_costs_the_timeout(receiver, reply, warnings_logged):
    """And no more."""
    never = threading.Event()
    receiver.replies.append(reply(200, wait_for=never))
    exporter = otlp_http.OTLPProfileExporter(receiver.url, timeout=0.3)
    before = time.monotonic()
    assert exporter.export([b"1"]) is FAILURE
    assert time.monotonic() - before < 2
    never.set()
    assert warnings_logged() == [f"a profile could not be sent to {receiver.url} and is dropped: no answer in time"]


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500, 503])
def test_no_secret_is_ever_told(receiver, reply, status, caplog, capfd):
    """Neither header, nor password, nor what the receiver echoes, nor the profile itself, at any log level."""
    caplog.set_level(logging.DEBUG)
    receiver.replies.append(reply(status, {"x-echo": "sesame", "retry-after": "600"}, b"you sent sesame"))
    url = receiver.url.replace("http://", "http://user:sesame@") + "/v1?key=sesame"
    exporter = otlp_http.OTLPProfileExporter(url, headers={"authorization": "Bearer sesame"}, timeout=1)
    exporter.export([b"profile with sesame"])
    exporter.shutdown()
    assert [got.path for got in receiver.received] == ["/v1?key=sesame"]
    assert '"POST /v1 HTTP/1.1"' in caplog.text
    told = caplog.text + repr(exporter) + repr(exporter.__dict__) + exporter.last_error + "".join(capfd.readouterr())
    assert "sesame" not in told


def test_requests_of_others_are_logged_as_ever(receiver, caplog):
    """While ours is under way, and after it."""
    caplog.set_level(logging.DEBUG)
    exporter = otlp_http.OTLPProfileExporter(receiver.url + "/ours?key=sesame", timeout=5)
    original = exporter._transport._transport.request

    def beside_another(*arguments, **options):
        thread = threading.Thread(
            target=requests.post, args=(receiver.url + "/theirs?key=value",), kwargs={"timeout": 5}
        )
        thread.start()
        thread.join()
        return original(*arguments, **options)

    exporter._transport._transport.request = beside_another
    assert exporter.export([b"1"]) is SUCCESS
    requests.post(receiver.url + "/later?key=value", timeout=5)
    assert '"POST /theirs?key=value HTTP/1.1"' in caplog.text
    assert '"POST /later?key=value HTTP/1.1"' in caplog.text
    assert '"POST /ours HTTP/1.1"' in caplog.text
    assert "sesame" not in caplog.text


def test_a_credential_provider_that_fails_is_told_by_its_type(monkeypatch):
    """Its text may hold the credential."""

    class EntryPoint:
        def load(self):
            raise RuntimeError("sesame")

    monkeypatch.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "vault")
    monkeypatch.setattr(_sdk_transport, "entry_points", lambda **_: [EntryPoint()])
    with pytest.raises(ExporterUnavailable, match=r"^the credential provider 'vault' failed: RuntimeError$") as refusal:
        otlp_http.OTLPProfileExporter("http://localhost:1")
    assert "sesame" not in "".join(traceback.format_exception(refusal.value))


def test_an_error_in_the_transport_is_told_by_its_type(exporter, monkeypatch, warnings_logged, receiver):
    """Its text may hold a header."""

    def fail(*arguments: object) -> HttpReply:
        raise RuntimeError("sesame")

    monkeypatch.setattr(exporter._transport, "post", fail)
    assert exporter.export([b"1"]) is FAILURE
    assert warnings_logged() == [
        f"{receiver.url}/v1development/profiles refused a profile, which is dropped: RuntimeError"
    ]


def test_a_missing_certificate_file_is_told_when_the_exporter_is_made(receiver):
    """Not at the first export."""
    with pytest.raises(ExporterUnavailable, match=r"^/no/such/file cannot be read$"):
        otlp_http.OTLPProfileExporter(receiver.url, certificate_file="/no/such/file")


def test_a_missing_helper_of_the_sdk_is_told_with_its_version(monkeypatch):
    """The helpers are private there: they may go."""
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.http.transport._requests", None)
    with pytest.raises(ExporterUnavailable, match=r"^opentelemetry-exporter-otlp-proto-http 1\.\d+"):
        otlp_http.OTLPProfileExporter("http://localhost:1")


def test_after_a_fork_the_parents_connection_is_left_alone(receiver, exporter):
    """The child makes its own."""
    before = exporter._transport
    exporter.after_fork()
    assert exporter._transport is not before
    assert exporter.export([b"1"]) is SUCCESS


def test_after_shutdown_nothing_is_sent(receiver, exporter, warnings_logged):
    """Twice is harmless."""
    exporter.shutdown()
    exporter.shutdown()
    assert exporter.export([b"1"]) is FAILURE
    assert receiver.received == []
    assert warnings_logged() == []
