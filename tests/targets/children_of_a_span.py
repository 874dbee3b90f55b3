"""Children that nobody awaits, made inside a span in every way; the parent waits for a hand-off."""

import asyncio

from targets.support import SNAPSHOTS, phase, snapshot, tracer

KEPT: "list[asyncio.Task[None]]" = []


async def child() -> None:
    await asyncio.sleep(60)


async def child_with_span() -> None:
    with tracer().start_as_current_span("own"):
        await asyncio.sleep(60)


async def parent(queue: "asyncio.Queue[int]") -> None:
    loop = asyncio.get_running_loop()
    with tracer().start_as_current_span("request"):
        KEPT.append(asyncio.create_task(child(), name="create_task"))
        KEPT.append(loop.create_task(child(), name="loop.create_task"))
        KEPT.append(asyncio.ensure_future(child()))
        KEPT[-1].set_name("ensure_future")
        KEPT.append(asyncio.Task(child(), name="Task"))
        KEPT.append(asyncio.create_task(child_with_span(), name="own span"))
        await queue.get()


async def main() -> None:
    queue = asyncio.Queue[int]()
    with phase():
        task = asyncio.create_task(parent(queue), name="parent")
        await asyncio.sleep(0.4)
        SNAPSHOTS.append(snapshot())
    queue.put_nowait(1)
    await task
    for child_task in KEPT:
        child_task.cancel()
