"""A web service whose page waits for two queries at once; one of them is slow. Run it as

    opentelemetry-instrument uvicorn service:app

and ask for http://127.0.0.1:8000/ some times.
"""

import asyncio

from opentelemetry import trace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

tracer = trace.get_tracer(__name__)


async def query(statement: str, seconds: float) -> None:
    with tracer.start_as_current_span(statement, kind=trace.SpanKind.CLIENT):
        await asyncio.sleep(seconds)


async def prices() -> None:
    await query("SELECT price", 0.02)


async def reviews() -> None:
    await query("SELECT review", 0.4)


async def page(request: Request) -> PlainTextResponse:
    await asyncio.gather(prices(), reviews())
    return PlainTextResponse("done\n")


app = Starlette(routes=[Route("/", page)])
