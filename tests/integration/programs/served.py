"""What the servers of the tests serve: the process that answers, after some work of its own. WSGI and ASGI."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any


def works_in_wsgi() -> None:
    time.sleep(0.05)


async def works_in_asgi() -> None:
    time.sleep(0.02)  # meanwhile the next request goes to another process
    await asyncio.sleep(0.03)


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    works_in_wsgi()
    start_response("200 OK", [("content-type", "text/plain"), ("connection", "close")])
    return [str(os.getpid()).encode()]


async def asgi(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await works_in_asgi()
    headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
