"""What asyncio does at the end of a task's coroutine takes long: the task is still its loop's current one."""

import asyncio
import time
from typing import Any

from targets.support import phase


async def sleeper() -> None:
    await asyncio.sleep(5)


async def short() -> None:
    await asyncio.sleep(0)


async def main() -> None:
    loop = asyncio.get_running_loop()
    call_soon = loop.call_soon

    def slow_call_soon(*args: Any, **options: Any) -> asyncio.Handle:
        if asyncio.current_task() is ending and ending.done():
            with phase():
                time.sleep(0.3)
        return call_soon(*args, **options)

    sleeping = asyncio.create_task(sleeper(), name="sleeper")
    ending = asyncio.create_task(short(), name="short")
    await asyncio.sleep(0)
    loop.call_soon = slow_call_soon  # type: ignore[method-assign]
    await ending
    loop.call_soon = call_soon  # type: ignore[method-assign]
    sleeping.cancel()
