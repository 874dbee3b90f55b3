"""Forks a child that works by itself, as servers do that fork their workers."""

import asyncio
import os
import sys

from opentelemetry import trace

tracer = trace.get_tracer("shop")


async def before_the_fork() -> None:
    with tracer.start_as_current_span("before"):
        await asyncio.sleep(0.2)


async def in_the_child() -> None:
    with tracer.start_as_current_span("child"):
        await asyncio.sleep(1.5)


async def in_the_parent(child: int) -> None:
    with tracer.start_as_current_span("parent"):
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
    print(child, os.waitstatus_to_exitcode(status))


asyncio.run(before_the_fork())
child = os.fork()
if child == 0:
    asyncio.run(in_the_child())
    sys.exit(5)
asyncio.run(in_the_parent(child))
