"""As many tasks as fill all places of the window, waiting all the time."""

import asyncio

from targets.support import REPORT, phase

COUNT = 2_047  # and main()


async def rest() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    rests = [asyncio.create_task(rest()) for _ in range(COUNT)]
    REPORT["tasks"] = COUNT
    await asyncio.sleep(0.1)
    with phase():
        await asyncio.sleep(1)
    for one in rests:
        one.cancel()
