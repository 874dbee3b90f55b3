"""A callback that blocks the loop while two tasks could run or wait."""

import asyncio
import time

from targets.support import phase


def blocks() -> None:
    with phase():
        time.sleep(0.3)


async def sleeper() -> None:
    await asyncio.sleep(5)


async def main() -> None:
    sleeping = asyncio.create_task(sleeper(), name="sleeper")
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(blocks)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    sleeping.cancel()
