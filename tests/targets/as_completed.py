"""as_completed() over ten awaitables in mixed order, half of them tasks and half coroutines."""

import asyncio

from targets.support import name_me

ORDER = [7, 2, 9, 4, 0, 5, 8, 1, 6, 3]


async def rest() -> None:
    await asyncio.sleep(60)


async def answer(number: int) -> None:
    name_me(f"answer {number}")
    await rest()


async def main() -> None:
    waits = [answer(number) if number % 2 else asyncio.create_task(answer(number)) for number in ORDER]
    for next_one in asyncio.as_completed(waits):
        await next_one
