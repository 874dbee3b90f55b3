"""An HTTP server that takes what profilers send and puts each body in a file."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path


@contextmanager
def sink(folder: Path) -> Iterator[str]:
    """Its URL; bodies become sink.1, sink.2 … in the folder."""
    numbers = count(1)

    class Handler(BaseHTTPRequestHandler):
        """Takes everything."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            (folder / f"sink.{next(numbers)}").write_bytes(body)
            self.send_response(200)
            self.send_header("Content-Type", self.headers.get("Content-Type", ""))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
