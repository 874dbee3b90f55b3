"""Children whose parent left the span, ended its span, or is gone."""

import asyncio

from opentelemetry import trace

from targets.support import name_me, tracer

KEPT = []


async def child(name: str) -> None:
    name_me(name)
    await asyncio.sleep(60)


async def ended() -> None:
    name_me("parent of ended")
    with tracer().start_as_current_span("ended"):
        KEPT.append(asyncio.create_task(child("ended")))
        await asyncio.sleep(0)
    await asyncio.Event().wait()


async def gone() -> None:
    span = tracer().start_span("gone")
    with trace.use_span(span):
        KEPT.append(asyncio.create_task(child("gone")))
    KEPT.append(span)


async def moved_on() -> None:
    name_me("parent of moved on")
    span = tracer().start_span("moved on")
    with trace.use_span(span):
        KEPT.append(asyncio.create_task(child("moved on")))
    KEPT.append(span)
    with tracer().start_as_current_span("next request"):
        await asyncio.Event().wait()


async def main() -> None:
    await asyncio.gather(ended(), gone(), moved_on())
