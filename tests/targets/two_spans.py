"""Siblings of a gather with a span each below a common one, and one without any span of its own."""

import asyncio

from targets.support import expect_span, name_me, tracer


async def foo() -> None:
    name_me("foo")
    with tracer().start_as_current_span("foo"):
        expect_span("foo")
        await asyncio.sleep(60)


async def bar() -> None:
    name_me("bar")
    with tracer().start_as_current_span("bar"):
        expect_span("bar")
        await asyncio.sleep(60)


async def inherits() -> None:
    name_me("inherits")
    expect_span("inherits")
    await asyncio.sleep(60)


async def root() -> None:
    name_me("root")
    with tracer().start_as_current_span("root"):
        expect_span("root")
        await asyncio.gather(foo(), bar(), inherits())


async def outside() -> None:
    name_me("outside")
    await asyncio.sleep(60)


async def main() -> None:
    await asyncio.gather(root(), outside())
