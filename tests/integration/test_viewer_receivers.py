"""What is sent to the viewer arrives, over each transport; what is not OTLP is refused with a reason."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from recordings import QUERY, REQUEST, TRACE, profiles, span, traces
from viewer_client import Client, running_viewer

from otel_asyncprof.formats.otlp_json import json_line
from otel_asyncprof.viewer.intake import TooLarge, unpacked
from otel_asyncprof.viewer.store import StoreFull

TRACE_PATH, PROFILE_PATH = "/v1/traces", "/v1development/profiles"
SERVICE = "opentelemetry.proto.collector"


@pytest.fixture(scope="module")
def viewer() -> Iterator[Client]:
    """One for all tests."""
    with running_viewer() as found:
        yield found


@pytest.fixture
def client(viewer: Client) -> Client:
    """An empty viewer."""
    viewer.empty()
    return viewer


def counts(client: Client) -> tuple[int, int, int]:
    """Spans, observations, and those of a span."""
    status = client.get("/api/status")
    return status["spans"], status["samples"], status["linked_samples"]


def grpc_call(client: Client, service: str, request: bytes, **options: object) -> bytes:
    """One Export call."""
    limits = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(str(client.viewer.grpc_address), options=limits) as channel:
        export = channel.unary_unary(f"/{SERVICE}.{service}/Export")
        reply: bytes = export(request, timeout=60, **options)
    assert client.viewer.store.flush()
    return reply


@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate"])
def test_traces_and_profiles_arrive_over_http(client: Client, encoding: str) -> None:
    """Compressed or not; an empty answer says that everything was taken."""
    pack = {"identity": bytes, "gzip": gzip.compress, "deflate": zlib.compress}[encoding]
    for path, messages in ((TRACE_PATH, [traces()]), (PROFILE_PATH, profiles())):
        for message in messages:
            reply = client.otlp(path, pack(message.SerializeToString()), Content_Encoding=encoding)
            assert (reply.status, reply.body) == (200, b"")
    assert counts(client) == (2, 11, 10)


def test_json_with_hexadecimal_ids_arrives(client: Client) -> None:
    """As OTLP has it, and as protobuf's own JSON has it, with ids in base64."""
    assert json.loads(json_line(traces()))["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] == TRACE.hex()
    assert client.otlp(TRACE_PATH, json_line(traces()), "application/json; charset=utf-8").json == {}
    in_base64 = json.dumps(MessageToDict(profiles()[0])).encode()
    assert client.otlp("/v1/profiles", in_base64, "application/json").status == 200
    assert counts(client) == (2, 11, 10)


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_traces_and_profiles_arrive_over_grpc(client: Client, compression: grpc.Compression) -> None:
    """With and without compression."""
    grpc_call(client, "trace.v1.TraceService", traces().SerializeToString(), compression=compression)
    for message in profiles():
        grpc_call(
            client, "profiles.v1development.ProfilesService", message.SerializeToString(), compression=compression
        )
    assert counts(client) == (2, 11, 10)


def test_a_message_over_grpc_may_be_larger_than_its_default(client: Client) -> None:
    """4 MiB are soon reached by a profile."""
    large = traces(span(REQUEST, "x", 0, 5, note="n" * (6 << 20)))
    grpc_call(client, "trace.v1.TraceService", large.SerializeToString())
    assert counts(client)[0] == 1


def test_a_bomb_over_grpc_is_refused(client: Client) -> None:
    """A message that unpacks to more than the limit."""
    with pytest.raises(grpc.RpcError) as caught:
        grpc_call(client, "trace.v1.TraceService", bytes(70 << 20), compression=grpc.Compression.Gzip)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_metrics_and_logs_are_answered_and_dropped_and_that_is_said_once(client: Client) -> None:
    """Else every SDK would print errors."""
    for _ in range(2):
        request = ExportMetricsServiceRequest().SerializeToString()
        assert client.otlp("/v1/metrics", request).status == 200
        assert client.otlp("/v1/logs", b"{}", "application/json").json == {}
        assert grpc_call(client, "metrics.v1.MetricsService", request) == b""
        assert grpc_call(client, "logs.v1.LogsService", b"") == b""
    expected = [
        f"{signal} are accepted and dropped: only traces and profiles are shown here" for signal in ("metrics", "logs")
    ]
    assert client.said == expected
    assert client.get("/api/status")["notes"] == expected


def test_spans_that_are_none_are_left_out_and_counted(client: Client) -> None:
    """The others are stored: a partial success, over HTTP and over gRPC."""
    good, no_id, no_end = span(REQUEST, "good", 0, 9), span(b"", "no id", 0, 9), span(QUERY, "no end", 0, 9)
    no_end.end_time_unix_nano = 0
    request = traces(good, no_id, no_end).SerializeToString()
    replies = [client.otlp(TRACE_PATH, request).body, grpc_call(client, "trace.v1.TraceService", request)]
    for body in replies:
        partial = ExportTraceServiceResponse.FromString(body).partial_success
        assert (partial.rejected_spans, partial.error_message) == (2, "a span has no valid span id")
    assert client.otlp(TRACE_PATH, json_line(traces(no_id)), "application/json").json == {
        "partialSuccess": {"rejectedSpans": "1", "errorMessage": "a span has no valid span id"}
    }
    assert counts(client)[0] == 1
    assert client.get("/api/status")["rejected"]["spans"] == 5


def test_samples_that_refer_to_nothing_are_left_out(client: Client) -> None:
    """One profile has a sample without its stack, the other is lost as a whole."""
    (message,) = profiles()
    of_resource = message.resource_profiles[0].scope_profiles[0]
    of_resource.profiles[1].samples[0].stack_index = 99
    for sample in of_resource.profiles[0].samples:
        sample.link_index = 99
    partial = ExportProfilesServiceResponse.FromString(
        client.otlp(PROFILE_PATH, message.SerializeToString()).body
    ).partial_success
    assert partial.rejected_profiles == 1
    assert partial.error_message.startswith("a sample does not hold together")
    assert 0 < counts(client)[1] < 11


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b"\xff\xff", {}, 400, "it is not protobuf"),
        (b"{", {"media": "application/json"}, 400, "it is not JSON"),
        (b"[1]", {"media": "application/json"}, 400, "it is JSON, but no request"),
        (b"[" * 100_000, {"media": "application/json"}, 400, "it is not JSON"),
        (b"x", {"media": "text/plain"}, 415, "content type"),
        (b"x", {"Content_Encoding": "br"}, 415, "content encoding"),
        (b"no gzip at all", {"Content_Encoding": "gzip"}, 400, "compression is damaged"),
        (gzip.compress(b"abc" * 99, mtime=0)[:20], {"Content_Encoding": "gzip"}, 400, "end too early"),
        (gzip.compress(bytes(65 << 20), mtime=0), {"Content_Encoding": "gzip"}, 413, "unpack to 64 MiB"),
        (bytes((32 << 20) + 1), {}, 413, "may have 32 MiB"),
    ],
)
def test_what_is_no_request_is_refused_with_a_reason(
    client: Client, body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    """And nothing is stored."""
    reply = client.otlp(TRACE_PATH, body, **headers)
    json_is_sent = "json" in reply.headers["content-type"]
    text = reply.json["message"] if json_is_sent else Status.FromString(reply.body).message
    assert (reply.status, words in text) == (status, True)
    assert counts(client) == (0, 0, 0)


def test_a_body_without_a_length_is_limited_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are counted while they come."""
    monkeypatch.setattr("otel_asyncprof.viewer.http_receiver.MAX_BODY_BYTES", 1000)
    chunk = b"200\r\n" + bytes(0x200) + b"\r\n"
    reply = client.otlp(TRACE_PATH, chunk * 4 + b"0\r\n\r\n", Transfer_Encoding="chunked")
    assert reply.status == 413


def test_a_bomb_is_unpacked_no_further_than_the_limit() -> None:
    """Neither in what is returned, nor in memory."""
    assert unpacked(gzip.compress(bytes(1000)), "gzip", most=1000) == bytes(1000)
    with pytest.raises(TooLarge):
        unpacked(gzip.compress(bytes(1001)), "gzip", most=1000)
    bomb = gzip.compress(bytes(32 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            unpacked(bomb, "gzip", most=1000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_where_writing_cannot_keep_up_the_sender_is_told_to_try_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with a time; UNAVAILABLE over gRPC. Nobody waits."""

    def full(batch: object) -> None:
        raise StoreFull

    monkeypatch.setattr(client.viewer.store, "add", full)
    reply = client.otlp(TRACE_PATH, traces().SerializeToString())
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    with pytest.raises(grpc.RpcError) as caught:
        grpc_call(client, "trace.v1.TraceService", traces().SerializeToString())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_samples_may_come_before_their_spans_and_spans_in_any_order(client: Client) -> None:
    """The trace is complete when all is there."""
    for message in profiles():
        client.otlp(PROFILE_PATH, message.SerializeToString())
    assert client.get("/api/traces")["total"] == 0
    child = span(QUERY, "SELECT orders", 5, 85, parent_span_id=REQUEST, db__query__text="SELECT 1")
    client.otlp(TRACE_PATH, traces(child).SerializeToString())
    (row,) = client.get("/api/traces")["traces"]
    assert (row["operation"], row["complete"], row["samples"]) == ("SELECT orders", False, 10)
    client.otlp(TRACE_PATH, traces(span(REQUEST, "GET /orders", 0, 90)).SerializeToString())
    (row,) = client.get("/api/traces")["traces"]
    assert (row["operation"], row["complete"], row["spans"], row["duration_us"]) == ("GET /orders", True, 2, 90_000)


def test_a_span_that_is_sent_again_is_not_there_twice(client: Client) -> None:
    """A sender whose answer was lost tries again."""
    for _ in range(2):
        client.otlp(TRACE_PATH, traces().SerializeToString())
    assert counts(client)[0] == 2
