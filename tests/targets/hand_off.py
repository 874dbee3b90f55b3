"""Tasks that wait for an event, a queue, a lock, a condition and a future set by a callback."""

import asyncio

from targets.support import name_me


async def for_event() -> None:
    name_me("event")
    await asyncio.Event().wait()


async def for_queue() -> None:
    name_me("queue")
    await asyncio.Queue[int]().get()


async def for_lock(lock: asyncio.Lock) -> None:
    name_me("lock")
    async with lock:
        raise AssertionError("the lock is never free")


async def for_condition() -> None:
    name_me("condition")
    condition = asyncio.Condition()
    async with condition:
        await condition.wait()


async def for_future() -> None:
    name_me("future")
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(60, future.set_result, None)
    await future


async def main() -> None:
    lock = asyncio.Lock()
    await lock.acquire()
    await asyncio.gather(for_event(), for_queue(), for_lock(lock), for_condition(), for_future())
