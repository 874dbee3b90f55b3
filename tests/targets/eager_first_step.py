"""A child that works in its first step: an eager task does so on its creator's stack, others when their turn comes."""

import asyncio

from targets.support import burn, phase


def work() -> None:
    burn(0.2)


async def child() -> None:
    work()
    await asyncio.sleep(0.2)


async def creator() -> None:
    await asyncio.create_task(child(), name="child")


async def main() -> None:
    await asyncio.sleep(0)
    with phase():
        await creator()
