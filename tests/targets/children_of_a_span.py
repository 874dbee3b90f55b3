"""Children that nobody awaits, made inside a span in every way; the parent waits for a hand-off."""

import asyncio

from targets.support import name_me, tracer

KEPT = []


async def child(name: str) -> None:
    name_me(name)
    await asyncio.sleep(60)


async def child_with_span(name: str) -> None:
    name_me(name)
    with tracer().start_as_current_span("own"):
        await asyncio.sleep(60)


async def parent() -> None:
    name_me("parent")
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[int]()
    with tracer().start_as_current_span("request"):
        KEPT.append(asyncio.create_task(child("create_task")))
        KEPT.append(loop.create_task(child("loop.create_task")))
        KEPT.append(asyncio.ensure_future(child("ensure_future")))
        KEPT.append(asyncio.Task(child("Task")))
        KEPT.append(asyncio.create_task(child_with_span("own span")))
        await queue.get()


async def main() -> None:
    await asyncio.gather(parent())
