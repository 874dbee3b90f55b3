"""Short tasks of many kinds: functions, names, awaiting tasks and spans bear the number of their kind."""

import asyncio
import contextvars
import time

from opentelemetry import context, trace
from targets.support import REPORT, phase, tracer

KINDS = 24
SECONDS = 3.0
LENGTH = 60
TEXT = """
def work_K():
    for _ in range(LENGTH):
        pass

async def leaf_K():
    work_K()

async def twice_K():
    work_K()
    await asyncio.sleep(0)
    work_K()

def task(coroutine):
    return asyncio.create_task(coroutine, name=coroutine.__qualname__)

async def awaiting_K():
    await task(leaf_K())
    await task(twice_K())

async def gathering_K():
    await asyncio.gather(task(leaf_K()), task(twice_K()), task(leaf_K()))

async def shielding_K():
    await asyncio.shield(task(twice_K()))

async def waiting_K():
    await asyncio.wait([task(leaf_K()), task(twice_K())])

async def limiting_K():
    await asyncio.wait_for(task(twice_K()), 10)

async def grouping_K():
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf_K(), name="leaf_K")
        group.create_task(twice_K(), name="twice_K")

async def iterated_K():
    work_K()
    yield 1
    await asyncio.sleep(0)
    yield 2

async def iterating_K():
    async for _ in iterated_K():
        work_K()
"""
CONSTRUCTS = ("awaiting", "gathering", "shielding", "waiting", "limiting", "grouping", "iterating")
SPACE = {"asyncio": asyncio, "LENGTH": LENGTH}


def make_contexts() -> list[contextvars.Context]:
    """One with a span for each kind."""
    contexts = []
    for kind in range(KINDS):
        exec(compile(TEXT.replace("_K", f"_{kind}"), f"bound_tasks_{kind}.py", "exec"), SPACE)
        span = tracer().start_span(f"span {kind}")
        contexts.append(contextvars.copy_context())
        contexts[-1].run(context.attach, trace.set_span_in_context(span))
        REPORT.setdefault("kinds", {})[span.get_span_context().span_id] = kind
    return contexts


async def main() -> None:
    with phase():
        contexts = make_contexts()
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for construct in CONSTRUCTS:
                names = [f"{construct}_{kind}" for kind in range(KINDS)]
                await asyncio.gather(
                    *(
                        asyncio.create_task(SPACE[name](), name=name, context=contexts[kind].copy())  # type: ignore[operator]
                        for kind, name in enumerate(names)
                    )
                )
