"""A driver in the style of asyncpg: a pool of one connection, futures resolved by the loop, a poller without span."""

import asyncio
import time

from targets.support import REPORT, expect_span, name_me, phase, tracer


class Connection:
    async def fetch(self, statement: str) -> str:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.2, answer.set_result, statement)
        return await answer


class Pool:
    def __init__(self) -> None:
        self.free = asyncio.Queue[Connection]()
        self.free.put_nowait(Connection())

    async def acquire(self) -> Connection:
        return await self.free.get()


async def query(pool: Pool) -> str:
    connection = await pool.acquire()
    answer = await connection.fetch("SELECT 1")
    pool.free.put_nowait(connection)
    return answer


async def request(pool: Pool, number: int) -> None:
    name_me(f"request {number}")  # at once: a factory names a task after its eager first step
    with tracer().start_as_current_span(f"request {number}"):
        expect_span(f"request {number}")
        await query(pool)


async def poller() -> None:
    began = time.perf_counter()
    await asyncio.sleep(0.6)
    REPORT["polled"] = time.perf_counter() - began


async def main() -> None:
    pool = Pool()
    with phase():
        requests = [asyncio.create_task(request(pool, number), name=f"request {number}") for number in range(3)]
        await asyncio.gather(poller(), *requests)
