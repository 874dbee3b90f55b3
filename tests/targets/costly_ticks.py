"""3,000 suspended tasks and one that runs now and then: a tick costs far more than the budget of one period."""

import asyncio

from targets.support import phase


async def rest() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    rests = asyncio.gather(*(rest() for _ in range(3_000)))
    await asyncio.sleep(0.1)
    with phase():
        for _ in range(600):
            await asyncio.sleep(0.005)
    rests.cancel()
    await asyncio.gather(rests, return_exceptions=True)
