"""The ASGI middleware: what it tells of a response, and what it leaves alone."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof.asgi import ServerTimingMiddleware
from otel_asyncprof.testing import capture

PROVIDER = TracerProvider(shutdown_on_exit=False)
TRACER = PROVIDER.get_tracer("test")


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Waits, blocks the loop, answers."""
    await asyncio.sleep(0.4)
    time.sleep(0.4)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"hello"})


def request(app: Any, *, with_span: bool = True, scope_type: str = "http") -> tuple[list[dict[str, Any]], str]:
    """The messages of one response, and the id of its trace."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def main() -> str:
        if not with_span:
            await app({"type": scope_type}, None, send)
            return ""
        with TRACER.start_as_current_span("GET /") as span:
            await app({"type": scope_type}, None, send)
            return format(span.get_span_context().trace_id, "032x")

    return sent, asyncio.run(main())


def times_of(headers: dict[bytes, bytes]) -> dict[str, float]:
    """Milliseconds by state."""
    parts = headers[b"server-timing"].decode().split(", ")
    found = [re.fullmatch(r"(\w+);dur=(\d+\.\d)", part) for part in parts]
    return {match[1]: float(match[2]) for match in found if match}


def test_a_response_tells_how_its_time_divides_and_which_trace_it_is() -> None:
    """Of its own trace; what is told is still in the profile."""
    with capture(tracer_provider=PROVIDER) as profile:
        sent, trace_id = request(ServerTimingMiddleware(answer))
    start, body = sent
    headers = dict(start["headers"])
    assert (headers[b"content-type"], headers[b"x-trace-id"]) == (b"text/plain", trace_id.encode())
    times = times_of(headers)
    assert {"waiting", "blocked"} <= times.keys() <= {"running", "waiting", "ready", "blocked"}
    assert min(times["waiting"], times["blocked"]) > 50  # of 400 each; how much was seen of it depends on the machine
    assert body == {"type": "http.response.body", "body": b"hello"}
    recorded = sum(sample.wall_ns for sample in profile.samples if format(sample.trace_id, "032x") == trace_id)
    assert recorded / 1e6 >= sum(times.values()) - 1


def test_requests_at_the_same_time_are_told_apart() -> None:
    """Each gets the time of its own trace."""

    async def wait(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(scope["seconds"])
        await send({"type": "http.response.start", "status": 200})

    async def one(seconds: float) -> float:
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        with TRACER.start_as_current_span("GET /"):
            await ServerTimingMiddleware(wait)({"type": "http", "seconds": seconds}, None, send)
        return times_of(dict(sent[0]["headers"]))["waiting"]

    async def main() -> list[float]:
        return await asyncio.gather(one(0.3), one(0.9))

    with capture(tracer_provider=PROVIDER):
        short, long = asyncio.run(main())
    assert 0 < short < long


def test_without_a_profiler_a_response_has_its_trace_id_alone() -> None:
    """And nothing that looks like a measurement."""
    sent, trace_id = request(ServerTimingMiddleware(answer))
    assert sent[0]["headers"] == [(b"content-type", b"text/plain"), (b"x-trace-id", trace_id.encode())]


@pytest.mark.parametrize(
    ("options", "with_span", "scope_type"),
    [({"enabled": False}, True, "http"), ({}, False, "http"), ({}, True, "lifespan")],
)
def test_what_has_no_span_is_not_http_or_not_wanted_passes_untouched(
    options: dict[str, bool], with_span: bool, scope_type: str
) -> None:
    """The very messages of the application."""
    sent, _ = request(ServerTimingMiddleware(answer, **options), with_span=with_span, scope_type=scope_type)
    assert sent[0]["headers"] == [(b"content-type", b"text/plain")]
    assert trace.get_current_span() is trace.INVALID_SPAN
