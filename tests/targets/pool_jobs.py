"""Jobs in a pool of one thread, by to_thread and by run_in_executor, while their tasks wait."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from targets.support import SNAPSHOTS, burn, phase, snapshot


def job() -> None:
    burn(0.2)


def other_job() -> None:
    burn(0.2)


async def in_thread() -> None:
    await asyncio.to_thread(job)


async def in_executor() -> None:
    await asyncio.get_running_loop().run_in_executor(None, other_job)


async def main() -> None:
    pool = ThreadPoolExecutor(1, thread_name_prefix="pool")
    asyncio.get_running_loop().set_default_executor(pool)
    await asyncio.to_thread(int)
    with phase():
        await asyncio.create_task(in_thread(), name="to_thread")
        await asyncio.create_task(in_executor(), name="run_in_executor")
        await asyncio.sleep(0.2)
        SNAPSHOTS.append(snapshot())
