"""A task group whose member works in its first step, and makes another that does."""

import asyncio

from targets.support import burn, phase


def work() -> None:
    burn(0.2)


async def grandchild() -> None:
    work()
    await asyncio.sleep(0.1)


async def child() -> None:
    await asyncio.gather(grandchild())


async def main() -> None:
    await asyncio.sleep(0)
    with phase():
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
