"""CPU work five awaits deep, with two task boundaries on the way."""

import asyncio

from targets.support import burn, phase


def sync_work() -> None:
    burn(0.25)


async def inner_3() -> None:
    await asyncio.sleep(0.02)
    with phase():
        sync_work()


async def inner_2() -> None:
    await inner_3()


async def inner_1() -> None:
    await asyncio.gather(asyncio.create_task(inner_2(), name="child"))


async def outer() -> None:
    await asyncio.create_task(inner_1(), name="middle")


async def main() -> None:
    await outer()
