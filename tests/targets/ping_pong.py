"""A task that works a little and gives way, over and over, beside fifty that sleep."""

import asyncio
import time

from targets.support import phase, spin


def math() -> None:
    spin(0.002)


async def works() -> None:
    end = time.monotonic() + 1
    while time.monotonic() < end:
        math()
        await asyncio.sleep(0)


async def waits() -> None:
    await asyncio.sleep(60)


async def look(sleepers: "list[asyncio.Task[None]]") -> None:
    await asyncio.sleep(0)
    with phase():
        await asyncio.create_task(works(), name="worker")
    for sleeper in sleepers:
        sleeper.cancel()


async def main() -> None:
    sleepers = [asyncio.create_task(waits()) for _ in range(50)]
    looking = asyncio.create_task(look(sleepers))
    await asyncio.gather(*sleepers, looking, return_exceptions=True)
