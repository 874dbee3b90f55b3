"""Background tasks that keep the context of a span that has ended, inside one that goes on and outside any."""

import asyncio

from targets.support import burn, expect_span, phase, tracer


def late_work() -> None:
    burn(0.15)


async def background() -> None:
    await asyncio.sleep(0.15)
    late_work()
    await asyncio.sleep(0.15)


async def nested_background() -> None:
    await asyncio.sleep(0.3)


async def request() -> "list[asyncio.Task[None]]":
    with tracer().start_as_current_span("request"):
        return [asyncio.create_task(background(), name="background")]


async def still_open(tasks: "list[asyncio.Task[None]]") -> None:
    await asyncio.wait(tasks)


async def main() -> None:
    tasks = await request()
    with tracer().start_as_current_span("outer"):
        expect_span("still_open")
        with tracer().start_as_current_span("inner"):
            tasks.append(asyncio.create_task(nested_background(), name="nested"))
        await asyncio.sleep(0)
        with phase():
            await still_open(tasks)
            await asyncio.sleep(0.1)
