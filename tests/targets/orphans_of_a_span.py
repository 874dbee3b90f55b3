"""Children whose parent left the span, ended its span, or is gone."""

import asyncio
from typing import Any

from opentelemetry import trace
from targets.support import SNAPSHOTS, phase, snapshot, tracer

KEPT: list[Any] = []


async def child() -> None:
    await asyncio.sleep(0.5)


async def ended() -> None:
    with tracer().start_as_current_span("ended"):
        KEPT.append(asyncio.create_task(child(), name="ended"))
        await asyncio.sleep(0)
    await asyncio.Event().wait()


async def gone() -> None:
    span = tracer().start_span("gone")
    with trace.use_span(span):
        KEPT.append(asyncio.create_task(child(), name="gone"))
    KEPT.append(span)


async def moved_on() -> None:
    span = tracer().start_span("moved on")
    with trace.use_span(span):
        KEPT.append(asyncio.create_task(child(), name="moved on"))
    KEPT.append(span)
    with tracer().start_as_current_span("next request"):
        await asyncio.Event().wait()


async def main() -> None:
    with phase():
        tasks = [
            asyncio.create_task(function(), name=f"parent of {function.__name__}")
            for function in (ended, gone, moved_on)
        ]
        await asyncio.sleep(0.4)
        SNAPSHOTS.append(snapshot())
    for task in tasks:
        task.cancel()
