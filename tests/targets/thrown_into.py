"""Clean-up work of a nested coroutine after its task was cancelled, and after a timeout threw into it."""

import asyncio

from targets.support import burn, phase


def clean_up() -> None:
    burn(0.15)


async def patient() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        clean_up()


async def holder() -> None:
    await patient()


async def main() -> None:
    cancelled = asyncio.create_task(holder(), name="cancelled")
    await asyncio.sleep(0)
    cancelled.cancel()
    with phase():
        await asyncio.wait([cancelled])
        try:
            async with asyncio.timeout(0.01):
                await holder()
        except TimeoutError:
            pass
