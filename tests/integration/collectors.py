"""Collectors of the tests: a real HTTP server and a real gRPC server that take traces and profiles over OTLP."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesPartialSuccess,
    ExportProfilesServiceRequest,
    ExportProfilesServiceResponse,
)
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2_grpc import (
    ProfilesServiceServicer,
    add_ProfilesServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

REQUESTS: dict[str, type[Message]] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1development/profiles": ExportProfilesServiceRequest,
}
SILENCE_SECONDS = 30.0
ACCEPT, UNKNOWN, MALFORMED, BUSY, PARTIAL, SILENT = "accept", "unknown", "malformed", "busy", "partial", "silent"
RETRY_SECONDS = 1
REJECTED_PROFILES = 1
PARTIAL_SUCCESS = ExportProfilesServiceResponse(
    partial_success=ExportProfilesPartialSuccess(rejected_profiles=REJECTED_PROFILES, error_message="sesame")
)


@dataclass(frozen=True)
class Arrival:
    """One request as it came over the wire."""

    message: Message
    headers: Mapping[str, str]  # lower-case names
    seconds_left: float | None = None  # until the client's deadline, which gRPC tells

    @property
    def signal(self) -> str:
        """Traces or profiles."""
        return "profiles" if isinstance(self.message, ExportProfilesServiceRequest) else "traces"


def closed_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Collector:
    """Keeps what arrives, in order. Profiles are answered as the queue says, then as the usual answer says."""

    protocol: str
    endpoint: str

    def __init__(self, usual: str = ACCEPT) -> None:
        self.arrivals: list[Arrival] = []
        self.answers: deque[str] = deque()
        self.usual = usual
        self._changed = threading.Condition()
        self._released = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._released.set()
        self._close()

    def _close(self) -> None:
        raise NotImplementedError

    def _take(self, arrival: Arrival) -> str:
        """Keeps an arrival; returns how it is to be answered."""
        with self._changed:
            self.arrivals.append(arrival)
            self._changed.notify_all()
            if arrival.signal == "traces":
                return ACCEPT
            answer = self.answers.popleft() if self.answers else self.usual
        if answer == SILENT:
            self._released.wait(SILENCE_SECONDS)
        return answer

    def wait_for(self, condition: Callable[[], bool], seconds: float = 50.0) -> bool:
        """Waits until the condition, looked at after each arrival, holds."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    @property
    def profiles(self) -> list[ExportProfilesServiceRequest]:
        """The profile requests so far."""
        return [each.message for each in self.arrivals if isinstance(each.message, ExportProfilesServiceRequest)]

    @property
    def traces(self) -> list[ExportTraceServiceRequest]:
        """The trace requests so far."""
        return [each.message for each in self.arrivals if isinstance(each.message, ExportTraceServiceRequest)]


class HttpCollector(Collector):
    """OTLP/HTTP with protobuf bodies."""

    protocol = "http/protobuf"

    def __init__(self, usual: str = ACCEPT) -> None:
        super().__init__(usual)
        outer = self

        class Handler(_Handler):
            collector = outer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # A client that goes away before its answer is part of some tests.
        self._server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class HttpsCollector(HttpCollector):
    """The same with TLS, for clients that show a certificate."""

    def __init__(self, files: Path) -> None:
        super().__init__()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files / "server.crt", files / "server.key")
        context.load_verify_locations(files / "client.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        # Shaken hands by the thread of the request, not by the one that accepts connections.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.endpoint = f"https://localhost:{self._server.server_port}"


class _Handler(BaseHTTPRequestHandler):
    collector: HttpCollector
    protocol_version = "HTTP/1.1"
    timeout = SILENCE_SECONDS

    def do_POST(self) -> None:
        """Decodes, keeps and answers one request."""
        size = int(self.headers["content-length"])
        body = self.rfile.read(size)
        if len(body) < size:  # the client was killed meanwhile
            self.close_connection = True
            return
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        assert self.headers["content-type"] == "application/x-protobuf"
        message = REQUESTS[self.path].FromString(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        match self.collector._take(Arrival(message, headers)):
            case "unknown":
                self._answer(404)
            case "malformed":
                self._answer(400, b"sesame")
            case "busy":
                self._answer(503, b"", ("retry-after", str(RETRY_SECONDS)))
            case "partial":
                self._answer(200, PARTIAL_SUCCESS.SerializeToString())
            case _:
                self._answer(200)

    def _answer(self, status: int, body: bytes = b"", *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("content-type", "application/x-protobuf"), ("content-length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps quiet."""


class GrpcCollector(Collector):
    """OTLP/gRPC: TraceService and ProfilesService."""

    protocol = "grpc"

    def __init__(self, usual: str = ACCEPT) -> None:
        super().__init__(usual)
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        add_TraceServiceServicer_to_server(_Traces(self), self._server)
        add_ProfilesServiceServicer_to_server(_Profiles(self), self._server)
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _close(self) -> None:
        self._server.stop(None).wait(5)


def _arrival(message: Message, context: grpc.ServicerContext) -> Arrival:
    headers = {name: str(value) for name, value in context.invocation_metadata()}
    return Arrival(message, headers, context.time_remaining())


class _Traces(TraceServiceServicer):
    def __init__(self, collector: GrpcCollector) -> None:
        self._collector = collector

    def Export(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> ExportTraceServiceResponse:
        self._collector._take(_arrival(request, context))
        return ExportTraceServiceResponse()


class _Profiles(ProfilesServiceServicer):
    def __init__(self, collector: GrpcCollector) -> None:
        self._collector = collector

    def Export(
        self, request: ExportProfilesServiceRequest, context: grpc.ServicerContext
    ) -> ExportProfilesServiceResponse:
        match self._collector._take(_arrival(request, context)):
            case "unknown":
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "sesame")
            case "malformed":
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "sesame")
            case "busy":
                delay = RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS))
                context.set_trailing_metadata((("google.rpc.retryinfo-bin", delay.SerializeToString()),))
                context.abort(grpc.StatusCode.UNAVAILABLE, "sesame")
            case "partial":
                return PARTIAL_SUCCESS
        return ExportProfilesServiceResponse()


COLLECTORS = {"http": HttpCollector, "grpc": GrpcCollector}
