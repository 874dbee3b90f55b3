"""Collectors that take nothing: each keeps a client waiting in a way of its own."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class Deaf:
    """Where profiles are sent in vain, and what must be so in the client."""

    plant = ""
    variables: dict[str, str] = {}  # noqa: RUF012 - never changed
    endpoint = "http://127.0.0.1:1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class Refuses(Deaf):
    """Nobody listens; tried again until the timeout."""

    variables = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}  # noqa: RUF012


class RefusesGrpc(Deaf):
    """The same over gRPC."""

    variables = {"OTEL_PROFILES_EXPORTER": "otlp_proto_grpc", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}  # noqa: RUF012


class NoNames(Deaf):
    """Names are not resolved: the call that asks for them never returns."""

    plant = "import socket; socket.getaddrinfo = lambda *_, **__: time.sleep(1000)\n"


class _Listens(Deaf):
    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._closing = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def __exit__(self, *exception: object) -> None:
        self._closing.set()
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=self._listener.accept()[:1], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            self._closing.wait()


class Accepts(_Listens):
    """A connection, and then nothing."""


class AcceptsGrpc(_Listens):
    """The same over gRPC."""

    variables = {"OTEL_PROFILES_EXPORTER": "otlp_proto_grpc"}  # noqa: RUF012


class Trickles(_Listens):
    """An answer that comes byte by byte, each before any timeout, and never ends."""

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            while not self._closing.wait(0.1):
                connection.sendall(b"x")


DEAF = {kind.__name__: kind for kind in (Refuses, RefusesGrpc, NoNames, Accepts, AcceptsGrpc, Trickles)}
