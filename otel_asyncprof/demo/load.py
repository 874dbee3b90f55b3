"""Sends the demo's requests."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

PATHS = (
    "/dashboard/north?days=90",
    "/orders/17",
    "/export/east",
    "/orders/404",
    "/dashboard/south?days=150",
    "/orders/23",
    "/export/west",
    "/dashboard/west?days=210",
)
CLIENTS = 3
TIMEOUT_SECONDS = 15.0


def drive(url: str, seconds: float) -> int:
    """Lets three clients go round the paths until the time is up; the number of requests that were answered well."""
    address = urlsplit(url).netloc
    paths = itertools.cycle(PATHS)
    lock = threading.Lock()
    deadline = time.monotonic() + seconds
    interrupted = threading.Event()

    def client() -> int:
        answered = 0
        while time.monotonic() < deadline and not interrupted.is_set():
            with lock:
                path = next(paths)
            answered += _get(address, path)
        return answered

    with ThreadPoolExecutor(CLIENTS, thread_name_prefix="demo-client") as pool:
        clients = [pool.submit(client) for _ in range(CLIENTS)]
        try:
            return sum(future.result() for future in clients)
        finally:
            interrupted.set()


def _get(address: str, path: str) -> bool:
    connection = HTTPConnection(address, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
