"""Spans of every kind: in tasks, inherited, ended, remote, not sampled, set before the views were there."""

import asyncio
import contextvars
import threading
from typing import Any

from opentelemetry import trace
from recording import PREFIX, begin_thread, finish, install_views, settle, take, tracer

KEPT: list[Any] = []


async def leaf() -> None:
    await asyncio.get_running_loop().create_future()


async def inside(name: str) -> None:
    with tracer.start_as_current_span(name):
        await leaf()


async def two_deep() -> None:
    with tracer.start_as_current_span("outer"), tracer.start_as_current_span("inner"):
        await leaf()


async def abandons() -> None:
    with tracer.start_as_current_span("of the child"):
        KEPT.append(asyncio.create_task(leaf(), name="child nobody awaits"))
        await leaf()


async def ends() -> None:
    with trace.use_span(tracer.start_span("ended"), end_on_exit=False):
        trace.get_current_span().end()
        await leaf()


async def carries(span_context: trace.SpanContext) -> None:
    with trace.use_span(trace.NonRecordingSpan(span_context)):
        await leaf()


async def with_many_variables() -> None:
    """Enough of them for array nodes."""
    for variable in VARIABLES:
        variable.set(None)
    with tracer.start_as_current_span("many variables"):
        await leaf()


def in_thread() -> None:
    with tracer.start_as_current_span("before the views"):
        rest()


def rest() -> None:
    STOP.acquire()


async def recorder() -> None:
    with tracer.start_as_current_span("recorder"):
        await settle()
        finish(take())


STOP = threading.Lock()
STOP.acquire()
VARIABLES = [contextvars.ContextVar[None](f"variable_{i}") for i in range(200)]


async def main() -> None:
    remote = trace.SpanContext(1 << 100, 1 << 50, True, trace.TraceFlags(1))
    unsampled = trace.SpanContext(1 << 101, 1 << 51, False, trace.TraceFlags(0))
    async with asyncio.TaskGroup() as group:
        group.create_task(inside("one span"), name="one")
        group.create_task(two_deep(), name="two")
        group.create_task(abandons(), name="abandons")
        group.create_task(ends(), name="ends")
        group.create_task(carries(remote), name="remote")
        group.create_task(carries(unsampled), name="unsampled")
        group.create_task(with_many_variables(), name="many variables")
        group.create_task(recorder(), name="recorder")


ABOVE = f"{PREFIX}main > __aexit__ > "
EXPECTED = {
    "one": [ABOVE + "inside > leaf"],
    "two": [ABOVE + "two_deep > leaf"],
    "abandons": [ABOVE + "abandons > leaf"],
    "child nobody awaits": [ABOVE + "abandons > leaf > leaf"],
    "ends": [ABOVE + "ends > leaf"],
    "remote": [ABOVE + "carries > leaf"],
    "unsampled": [ABOVE + "carries > leaf"],
    "many variables": [ABOVE + "with_many_variables > leaf"],
    "recorder": [ABOVE + "recorder"],
    "thread": ["_bootstrap > _bootstrap_inner > run > in_thread > rest"],
}
# The span of each; a span that has ended, is remote or not sampled is none.
SPANS = {
    "one": "one span",
    "two": "inner",
    "abandons": "of the child",
    "child nobody awaits": "of the child",
    "ends": None,
    "remote": None,
    "unsampled": None,
    "many variables": "many variables",
    "recorder": "recorder",
    "thread": "before the views",
}


def run() -> None:
    begin_thread("thread", in_thread, rest)
    install_views()
    asyncio.run(main())


if __name__ == "__main__":
    run()
