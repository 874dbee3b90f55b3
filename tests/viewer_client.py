"""A viewer on free ports, and requests to it."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from otel_asyncprof.cli.page import page_of
from otel_asyncprof.viewer.server import Viewer, ViewerOptions

TIMEOUT = 60.0


@dataclass(frozen=True)
class Reply:
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)


@dataclass
class Client:
    """Talks to a viewer; headers are sent exactly as given."""

    viewer: Viewer
    said: list[str] = field(default_factory=list)

    def page(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """A request to the page's address."""
        return request(self.viewer.page_address, method, path, body, headers)

    def otlp(self, path: str, body: bytes, media: str = "application/x-protobuf", **headers: str) -> Reply:
        """A request to the OTLP receiver, stored before it returns."""
        assert self.viewer.http_address is not None
        reply = request(self.viewer.http_address, "POST", path, body, {"Content-Type": media} | headers)
        assert self.viewer.store.flush()
        return reply

    def get(self, path: str, **query: object) -> Any:
        """What a path of the API answers."""
        address = f"{path}?{urlencode(query, doseq=True)}" if query else path
        reply = self.page("GET", address)
        assert reply.status == 200, (address, reply.status, reply.body)
        return reply.json

    def empty(self) -> None:
        """As after its start."""
        self.viewer.store.clear()
        self.viewer.store.rejected = dict.fromkeys(self.viewer.store.rejected, 0)
        self.viewer.intake.notes.clear()
        self.said.clear()

    def load(self, recording: Any) -> None:
        """Puts a recording into the store."""
        from otel_asyncprof.formats.recording import to_recording

        reply = self.page("POST", "/api/import", to_recording(recording))
        assert reply.status == 200, reply.body


def request(address: str, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
    """One request on a connection of its own."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
    try:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in given, skip_accept_encoding=True)
        for name, value in given.items():
            connection.putheader(name, value)
        if body is not None and "Transfer-Encoding" not in given:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        if body is not None:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent; the answer is there
                connection.send(body)
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


@contextmanager
def running_viewer(**options: Any) -> Iterator[Client]:
    """A viewer from here to the end of the block."""
    said: list[str] = []
    chosen = {"grpc_port": 0, "http_port": 0, "ui_port": 0, "say": said.append, "html_of": page_of} | options
    with Viewer(ViewerOptions(**chosen)) as viewer:
        yield Client(viewer, said)


def until(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within a minute."""
    deadline = time.monotonic() + TIMEOUT
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()
