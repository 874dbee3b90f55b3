"""Two loops in two threads, each with a task that gathers five others."""

import asyncio
import threading
from collections.abc import Callable

from targets.support import name_me

TASKS = 14


async def child(name: str) -> None:
    name_me(name)
    await asyncio.sleep(60)


async def collect(side: str) -> None:
    name_me(f"{side} collector")
    await asyncio.gather(*(child(f"{side} {number}") for number in range(5)))


async def main(side: str) -> None:
    name_me(f"{side} main")
    await asyncio.create_task(collect(side))


def serve(side: str, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main(side))


def run(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    threading.Thread(target=serve, args=["second", loop_factory], name="second loop", daemon=True).start()
    serve("first", loop_factory)
