"""CPU work in callbacks of the loop, which belong to no task, while a task sleeps."""

import asyncio

from targets.support import burn, phase


def soon() -> None:
    burn(0.15)


def later() -> None:
    burn(0.15)


async def sleeper() -> None:
    await asyncio.sleep(0.5)


async def main() -> None:
    task = asyncio.create_task(sleeper(), name="sleeper")
    await asyncio.sleep(0)
    with phase():
        asyncio.get_running_loop().call_soon(soon)
        asyncio.get_running_loop().call_later(0.05, later)
        await task
