"""Jobs in a pool of one thread, by to_thread and by run_in_executor, while their tasks wait."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from targets.support import SNAPSHOTS, burn, phase, snapshot


def job() -> None:
    burn(0.2)


def other_job() -> None:
    burn(0.2)


def remember_once_suspended() -> None:
    """The job may begin, and remember what it sees, while its task is still on its way to waiting."""
    asyncio.get_running_loop().call_soon(lambda: SNAPSHOTS.append(snapshot()))


async def in_thread() -> None:
    remember_once_suspended()
    await asyncio.to_thread(job)


async def in_executor() -> None:
    remember_once_suspended()
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
