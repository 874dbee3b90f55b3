"""A task that waits for a task, waits alone, works and waits for a group: for more than a second in all."""

import asyncio
import time

from targets.support import REPORT, burn, phase


async def child(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def life() -> None:
    start = time.perf_counter()
    await asyncio.create_task(child(0.4))
    await asyncio.sleep(0.3)
    burn(0.2)
    async with asyncio.TaskGroup() as group:
        group.create_task(child(0.3))
    REPORT["lifetime"] = time.perf_counter() - start


async def main() -> None:
    await asyncio.sleep(0.05)
    with phase():
        await asyncio.create_task(life())
