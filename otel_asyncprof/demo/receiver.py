"""A small OTLP/HTTP receiver that keeps what it was sent: traces and profiles."""

import gzip
import threading
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MAX_BODY_BYTES = 64 << 20
MAX_REQUESTS = 1000  # of each signal; older ones make room
POLL_SECONDS = 0.05
READ_TIMEOUT_SECONDS = 10.0


class Receiver:
    """Listens on a free port of this machine from `with` to the end of its block."""

    def __init__(self, also: Callable[[Message], object] | None = None) -> None:
        """`also` gets each request, too."""
        self._traces: deque[bytes] = deque(maxlen=MAX_REQUESTS)
        self._profiles: deque[bytes] = deque(maxlen=MAX_REQUESTS)
        signals: dict[str, tuple[type[Message], deque[bytes]]] = {
            "/v1/traces": (ExportTraceServiceRequest, self._traces),
            "/v1development/profiles": (ExportProfilesServiceRequest, self._profiles),
        }

        class Handler(_Handler):
            accepted = signals
            pass_on = staticmethod(also or (lambda message: None))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_SECONDS,), name="otlp-receiver", daemon=True
        )

    @property
    def traces(self) -> list[bytes]:
        """What has arrived so far; more may arrive while that is read."""
        return list(self._traces)

    @property
    def profiles(self) -> list[bytes]:
        """What has arrived so far."""
        return list(self._profiles)

    @property
    def endpoint(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT has to be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    accepted: dict[str, tuple[type[Message], deque[bytes]]]
    pass_on: Callable[[Message], object]
    protocol_version = "HTTP/1.1"
    timeout = READ_TIMEOUT_SECONDS

    def do_POST(self) -> None:
        """Decodes one export request and keeps it."""
        if self.path not in self.accepted:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
            return
        if int(length) > MAX_BODY_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length))
        message_type, kept = self.accepted[self.path]
        try:
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            message = message_type()
            message.ParseFromString(body)
        except (DecodeError, OSError, EOFError):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        kept.append(body)
        self.pass_on(message)
        self._answer(HTTPStatus.OK)  # an empty body is an empty Export…ServiceResponse: everything was accepted

    def _refuse(self, status: HTTPStatus) -> None:
        self.close_connection = True
        self._answer(status)

    def _answer(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps quiet: the standard output belongs to the report."""
