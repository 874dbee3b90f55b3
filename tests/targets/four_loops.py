"""Three threads with a loop each, and a fourth loop in the main thread; the loops of two threads are uvloop's."""

import asyncio
import threading
from collections.abc import Callable

import uvloop
from targets.support import name_me

TASKS = 8


async def job(number: int) -> None:
    name_me(f"job {number}")
    await asyncio.sleep(60)


async def main(number: int) -> None:
    name_me(f"main {number}")
    await asyncio.gather(job(number))


def serve(number: int, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main(number))


def run(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    for number, factory in enumerate([asyncio.new_event_loop, uvloop.new_event_loop, uvloop.new_event_loop], 1):
        threading.Thread(target=serve, args=[number, factory], name=f"loop {number}", daemon=True).start()
    serve(0, loop_factory)
