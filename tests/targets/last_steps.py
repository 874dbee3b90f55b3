"""Tasks whose only step is over soon, one after the other, in a loop that was started from deep down."""

import asyncio
import time
from collections.abc import Callable

from targets.support import phase

DEPTH = 300
SECONDS = 1.0


async def one_step() -> None:
    for _ in range(500):
        pass


async def several() -> None:
    await asyncio.gather(*(one_step() for _ in range(20)))


async def main() -> None:
    with phase():
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            await several()


def run(factory: Callable[[], asyncio.AbstractEventLoop], depth: int = DEPTH) -> None:
    if depth:
        run(factory, depth - 1)
    else:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(main())
