"""aiohttp as server and as client of a slow server."""

from __future__ import annotations

from typing import Any

import aiohttp
import support
from aiohttp import web
from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
from opentelemetry.instrumentation.aiohttp_server import AioHttpServerInstrumentor
from slow_http import ask, slow_server

AioHttpClientInstrumentor().instrument()
AioHttpServerInstrumentor().instrument()  # before an application is made


async def send_headers(session: Any, context: Any, parameters: Any) -> None:
    support.burn()


async def main() -> None:
    watched = aiohttp.TraceConfig()
    watched.on_request_headers_sent.append(send_headers)
    app = web.Application()
    runner = web.AppRunner(app)
    with slow_server() as slow:
        async with aiohttp.ClientSession() as client, aiohttp.ClientSession(trace_configs=[watched]) as slow_client:

            async def read_orders(request: web.Request) -> web.Response:
                async with client.get(slow) as answer:  # read_orders
                    return web.Response(text=await answer.text())

            async def read_events(request: web.Request) -> web.Response:
                async with slow_client.get(slow) as answer:
                    return web.Response(text=await answer.text())

            app.router.add_get("/orders", read_orders)
            app.router.add_get("/events", read_events)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            await ask(f"http://127.0.0.1:{port}/orders")
            await ask(f"http://127.0.0.1:{port}/events")
            await runner.cleanup()


if __name__ == "__main__":
    support.run(main)
