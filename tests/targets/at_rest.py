"""2,000 tasks sleep while nothing at all runs; then one of them moves on."""

import asyncio

from targets.support import REPORT, phase

COUNT = 2_000


async def rest() -> None:
    await asyncio.sleep(60)


async def before() -> None:
    await asyncio.sleep(1)


async def after() -> None:
    await asyncio.sleep(0.3)


async def mover() -> None:
    await before()
    await after()


async def main() -> None:
    rests = asyncio.gather(*(rest() for _ in range(COUNT)))
    await asyncio.sleep(0.1)
    with phase():
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.create_task(mover(), name="mover")
        REPORT["moved"] = loop.time() - begun
    rests.cancel()
    await asyncio.gather(rests, return_exceptions=True)
