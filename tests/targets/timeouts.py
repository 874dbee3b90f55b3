"""timeout() and timeout_at() in five tasks of a gather()."""

import asyncio

from targets.support import name_me


async def rest() -> None:
    await asyncio.sleep(60)


async def limited(number: int) -> None:
    name_me(f"limited {number}")
    async with asyncio.timeout(50):
        await rest()


async def limited_until(number: int) -> None:
    name_me(f"limited {number}")
    async with asyncio.timeout_at(asyncio.get_running_loop().time() + 50):
        await rest()


async def main() -> None:
    await asyncio.gather(limited(0), limited_until(1), limited(2), limited_until(3), limited(4))
