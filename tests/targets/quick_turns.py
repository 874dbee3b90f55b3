"""Many tasks that are ready all the time, each of which runs for a moment when its turn comes."""

import asyncio
import time

from targets.support import phase, spin

TASKS = 64
SECONDS = 1.5


async def turns(end: float) -> None:
    while time.monotonic() < end:
        spin(10e-6)
        await asyncio.sleep(0)


async def main() -> None:
    with phase():
        end = time.monotonic() + SECONDS
        await asyncio.gather(*(asyncio.create_task(turns(end), name="turns") for _ in range(TASKS)))
