"""Five shielded tasks in a gather(), and one shielded coroutine awaited directly."""

import asyncio

from targets.support import name_me


async def rest() -> None:
    await asyncio.sleep(60)


async def guarded(number: int) -> None:
    name_me(f"guarded {number}")
    await rest()


async def alone() -> None:
    name_me("alone")
    await asyncio.shield(guarded(5))


async def main() -> None:
    shields = [asyncio.shield(asyncio.create_task(guarded(number))) for number in range(5)]
    await asyncio.gather(*shields, alone())
