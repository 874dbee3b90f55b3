"""As many short tasks as one core can run: requests of 100 tasks each that end after one turn of the loop."""

import asyncio
from itertools import cycle
from typing import Any

from programs.run import KINDS, Run, kinds, main

TASKS_OF_A_REQUEST = 100


async def query() -> None:
    await asyncio.sleep(0)


async def handle(kind: int) -> None:
    await asyncio.gather(*(query_kinds[kind]() for _ in range(TASKS_OF_A_REQUEST)))


query_kinds: list[Any] = kinds(query)
handle_kinds: list[Any] = kinds(handle)


async def churn(run: Run) -> None:
    for kind in cycle(range(KINDS)):
        with run.request_span() as span:
            run.note_span(span, f"query_{kind}")
            await handle_kinds[kind](kind)
        run.units += TASKS_OF_A_REQUEST


async def program(run: Run) -> None:
    for kind in range(KINDS):
        run.note_leaf(f"query_{kind}", f"handle_{kind}")
    driver = asyncio.create_task(churn(run))
    await run.measure()
    assert not driver.done()


if __name__ == "__main__":
    main(program)
