"""A task whose awaited task is done, while the loop is busy with another: it waits for nothing any more."""

import asyncio

from targets.support import burn, phase


async def short() -> None:
    await asyncio.sleep(0)


async def waiter(child: "asyncio.Task[None]") -> None:
    await child


async def busy() -> None:
    await asyncio.sleep(0)
    with phase():
        burn(0.3)


async def main() -> None:
    child = asyncio.create_task(short(), name="child")
    ready = asyncio.create_task(waiter(child), name="waiter")
    await asyncio.gather(asyncio.create_task(busy(), name="busy"), ready)
