"""A busy and a waiting phase over task boundaries; the profiler is started at the place that ORDER names.

usage: start_order.py ORDER RESULT
"""

import sys

ORDER, RESULT = sys.argv[1:] if __name__ == "__main__" else ("", "")
if ORDER == "before asyncio":
    from otel_asyncprof.testing import capture

    EARLY = capture(rate=200)
    EARLY_PROFILE = EARLY.__enter__()

import asyncio  # noqa: E402
import dataclasses  # noqa: E402
import json  # noqa: E402
import threading  # noqa: E402
from typing import Any  # noqa: E402

from targets.support import burn  # noqa: E402

STARTED: list[Any] = []


def start() -> None:
    from otel_asyncprof.testing import capture

    started = capture(rate=200)
    STARTED.extend([started, started.__enter__()])


def start_at(place: str) -> None:
    if place == ORDER:
        start()


async def leaf() -> None:
    start_at("inside a child task")
    if ORDER == "from another thread":
        thread = threading.Thread(target=start, name="starter")
        thread.start()
        await asyncio.to_thread(thread.join)
    await asyncio.sleep(0.3)
    burn(0.15)


async def middle() -> None:
    start_at("inside the loop")
    await asyncio.gather(leaf())


async def main() -> None:
    await asyncio.create_task(middle())


def start_program() -> None:
    start_at("before the loop")
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    start_at("loop set, not running")
    loop.run_until_complete(main())


if __name__ == "__main__":
    if ORDER == "before asyncio":
        STARTED.extend([EARLY, EARLY_PROFILE])
    start_program()
    STARTED[0].__exit__(None, None, None)
    with open(RESULT, "w", encoding="utf-8") as file:
        json.dump([dataclasses.asdict(sample) for sample in STARTED[1].samples], file)
