"""CPU work in callbacks of the loop, which belong to no task, while a task sleeps."""

import asyncio

from targets.support import burn, phase


def soon() -> None:
    burn(0.15)


def later() -> None:
    burn(0.15)


def end(looking: phase, task: "asyncio.Task[None]") -> None:
    looking.__exit__(None, None, None)
    task.cancel()


async def sleeper() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(sleeper(), name="sleeper")
    await asyncio.sleep(0)
    loop.call_later(0.01, lambda: loop.call_soon(soon))
    loop.call_later(0.02, later)
    loop.call_later(0.6, end, phase().__enter__(), task)
    await asyncio.wait([task])
