"""CPU work in callbacks of the loop, which belong to no task, while a task sleeps."""

import asyncio
import contextlib
from collections.abc import Iterator

from targets.support import burn, phase


def burning() -> Iterator[None]:
    burn(0.15)
    yield


async def by_hand() -> None:
    burn(0.15)


def soon() -> None:
    """A generator and a coroutine that no task runs."""
    list(burning())
    with contextlib.suppress(StopIteration):
        by_hand().send(None)


def later() -> None:
    burn(0.15)


def begin(task: "asyncio.Task[None]") -> None:
    """Starts when both tasks are at rest."""
    loop = asyncio.get_running_loop()
    looking = phase().__enter__()
    loop.call_soon(soon)
    loop.call_later(0.02, later)
    loop.call_later(0.6, end, looking, task)


def end(looking: phase, task: "asyncio.Task[None]") -> None:
    looking.__exit__(None, None, None)
    task.cancel()


async def sleeper() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    task = asyncio.create_task(sleeper(), name="sleeper")
    asyncio.get_running_loop().call_later(0.05, begin, task)
    await asyncio.wait([task])
