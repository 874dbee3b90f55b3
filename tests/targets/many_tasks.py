"""25,000 suspended tasks, gathered in one step so that the task set grows as far as it does."""

import asyncio

from targets.support import phase

COUNT = 25_000


async def rest() -> None:
    await asyncio.sleep(60)


async def look() -> None:
    await asyncio.sleep(0.3)
    with phase():
        await asyncio.sleep(0.6)


async def main() -> None:
    rests = asyncio.gather(*(rest() for _ in range(COUNT)))
    await asyncio.create_task(look(), name="look")
    rests.cancel()
    await asyncio.gather(rests, return_exceptions=True)
