"""FastAPI on uvicorn: routes below a middleware of Starlette's, which ask a server with httpx, or run in a thread."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import support
import uvicorn
from fastapi import FastAPI, Request
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from slow_http import ask, slow_server

HTTPXClientInstrumentor().instrument()
app = FastAPI()


@app.middleware("http")
async def pass_on(request: Request, call_next: Any) -> Any:
    return await call_next(request)


async def send_event(name: str, info: Any) -> None:
    if name == "http11.send_request_headers.started":
        support.burn()


@app.get("/orders")
async def read_orders() -> None:
    await app.state.client.get(app.state.slow)  # read_orders


@app.get("/events")
async def read_events() -> None:
    await app.state.client.get(app.state.slow, extensions={"trace": send_event})


@app.get("/report")
def write_report() -> None:
    support.burn()


async def main() -> None:
    FastAPIInstrumentor.instrument_app(app, tracer_provider=support.provider, exclude_spans=["send", "receive"])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with slow_server() as app.state.slow:
        async with httpx.AsyncClient() as app.state.client:
            for path in ("orders", "events", "report"):
                await ask(f"http://127.0.0.1:{port}/{path}")
    server.should_exit = True
    await serving


if __name__ == "__main__":
    support.run(main)
