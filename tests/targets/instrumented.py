"""A client call wrapped by an instrumentation, whose coroutines stand in between, in place and in tasks, or last."""

import asyncio
from typing import Any

from targets.support import name_me

FILE = "/site-packages/opentelemetry/instrumentation/client/__init__.py"
SOURCE = """
async def traced(function):
    return await function()


async def traced_leaf():
    await sleep_forever()
"""


async def fetch() -> None:
    await asyncio.sleep(60)


async def in_place() -> None:
    name_me("in place")
    await TRACED["traced"](fetch)


async def in_task() -> None:
    await asyncio.create_task(TRACED["traced"](fetch), name="fetch")


async def in_gather() -> None:
    await asyncio.gather(asyncio.create_task(in_task(), name="in task"))


async def as_leaf() -> None:
    name_me("as leaf")
    await TRACED["traced_leaf"]()


TRACED: dict[str, Any] = {"sleep_forever": lambda: asyncio.get_running_loop().create_future()}
exec(compile(SOURCE, FILE, "exec"), TRACED)


async def main() -> None:
    await asyncio.gather(in_place(), in_gather(), as_leaf())
