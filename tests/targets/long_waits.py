"""2,000 tasks that wait all the time: first while nothing runs, then while a task runs every 2 ms."""

import asyncio

from targets.support import phase

COUNT = 2_000
SECONDS = 1.0


async def rest() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    rests = [asyncio.create_task(rest()) for _ in range(COUNT)]
    await asyncio.sleep(0.1)
    with phase():
        await asyncio.sleep(SECONDS)
    with phase():
        loop = asyncio.get_running_loop()
        end = loop.time() + SECONDS
        while loop.time() < end:
            await asyncio.sleep(0.002)
    for one in rests:
        one.cancel()
