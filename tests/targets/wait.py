"""asyncio.wait() on tasks: its set given by position and by keyword, waiting for all and for the first."""

import asyncio


async def leaf() -> None:
    await asyncio.sleep(60)


async def by_position() -> None:
    tasks = [asyncio.create_task(leaf(), name=f"position {number}") for number in range(2)]
    await asyncio.wait(tasks)


async def by_keyword() -> None:
    tasks = [asyncio.create_task(leaf(), name=f"keyword {number}") for number in range(2)]
    await asyncio.wait(fs=tasks, timeout=60, return_when=asyncio.FIRST_COMPLETED)


async def main() -> None:
    both = [
        asyncio.create_task(by_position(), name="by position"),
        asyncio.create_task(by_keyword(), name="by keyword"),
    ]
    await asyncio.gather(*both)
