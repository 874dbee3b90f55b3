"""200 concurrent requests, each with spans, functions for work and functions for sleeping of its own."""

import asyncio
import random

from targets.support import expect_span, named, phase, spin, tracer

REQUESTS = 200


def work() -> None:
    spin(0.004)


async def pause() -> None:
    await asyncio.sleep(random.uniform(0.05, 0.15))


async def request(number: int) -> None:
    outer_work, outer_pause, query_work, query_pause, after = (
        named(function, f"{name} {number}")
        for name, function in [("work", work), ("pause", pause), ("query", work), ("fetch", pause), ("after", pause)]
    )
    with tracer().start_as_current_span(f"request {number}"):
        for function in (outer_work, outer_pause):
            expect_span(function.__name__)
        await outer_pause()
        outer_work()
        with tracer().start_as_current_span(f"query {number}"):
            for function in (query_work, query_pause):
                expect_span(function.__name__)
            await query_pause()
            query_work()
        outer_work()
        await outer_pause()
    expect_span(after.__name__)
    await after()


async def main() -> None:
    with phase():
        await asyncio.gather(*(request(number) for number in range(REQUESTS)))
