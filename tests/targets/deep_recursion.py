"""A recursion deeper than any limit of frames, suspended in one task and running in another."""

import asyncio

from targets.support import burn, name_me, phase


def dive(depth: int) -> None:
    if depth:
        dive(depth - 1)
    else:
        burn(0.3)


async def descend(depth: int) -> None:
    if depth:
        await descend(depth - 1)
    else:
        await asyncio.sleep(60)


async def suspended() -> None:
    name_me("suspended")
    await descend(300)


async def main() -> None:
    task = asyncio.create_task(suspended())
    await asyncio.sleep(0.05)
    with phase():
        dive(300)
        await asyncio.sleep(0.2)
    task.cancel()
