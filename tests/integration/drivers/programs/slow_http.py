"""A slow HTTP server in threads of its own, and requests to a server in this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import support


class Slow(BaseHTTPRequestHandler):
    """Answers late."""

    def do_GET(self) -> None:
        time.sleep(support.SLOW_SECONDS)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True


@contextlib.contextmanager
def slow_server() -> Iterator[str]:
    """Its URL."""
    with Server(("127.0.0.1", 0), Slow) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def _ask(url: str) -> None:
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()


async def ask(url: str) -> None:
    """Asks in a thread, so that this loop can answer, and again until that has been seen."""
    await support.repeat(lambda: asyncio.to_thread(_ask, url))
