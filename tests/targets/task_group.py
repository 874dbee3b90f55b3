"""Task groups: five tasks each with a group of its own, and one that still works inside its group."""

import asyncio

from targets.support import name_me


async def rest() -> None:
    await asyncio.sleep(60)


async def member(number: int) -> None:
    await rest()


async def with_group(number: int) -> None:
    name_me(f"group {number}")
    async with asyncio.TaskGroup() as group:
        group.create_task(member(number), name=f"member {number}")


async def still_inside() -> None:
    name_me("inside")
    async with asyncio.TaskGroup() as group:
        group.create_task(member(5), name="member 5")
        await rest()


async def main() -> None:
    await asyncio.gather(*(with_group(number) for number in range(5)), still_inside())
