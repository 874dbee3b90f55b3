"""Two tasks that await each other; a leaf stands on the pair."""

import asyncio

PAIR: "dict[str, asyncio.Task[None]]" = {}


async def leaf() -> None:
    await asyncio.sleep(60)


async def ping() -> None:
    await asyncio.sleep(0)
    await PAIR["pong"]


async def pong() -> None:
    await asyncio.sleep(0)
    await asyncio.gather(PAIR["ping"], asyncio.create_task(leaf(), name="leaf"))


async def main() -> None:
    PAIR["ping"] = asyncio.create_task(ping(), name="ping")
    PAIR["pong"] = asyncio.create_task(pong(), name="pong")
    await asyncio.sleep(60)
