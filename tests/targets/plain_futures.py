"""Tasks that wait for plain futures, no tasks, in every construct that also takes tasks."""

import asyncio

from targets.support import name_me


def future() -> "asyncio.Future[None]":
    return asyncio.get_running_loop().create_future()


async def directly() -> None:
    name_me("directly")
    await future()


async def in_gather() -> None:
    name_me("gather")
    await asyncio.gather(future(), future())


async def in_wait() -> None:
    name_me("wait")
    await asyncio.wait([future(), future()])


async def in_wait_for() -> None:
    name_me("wait_for")
    await asyncio.wait_for(future(), 60)


async def in_shield() -> None:
    name_me("shield")
    await asyncio.shield(future())


async def in_as_completed() -> None:
    name_me("as_completed")
    for next_one in asyncio.as_completed([future(), future()]):
        await next_one


async def main() -> None:
    ways = [directly, in_gather, in_wait, in_wait_for, in_shield, in_as_completed]
    await asyncio.gather(*(way() for way in ways))
