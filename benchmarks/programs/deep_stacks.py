"""Deep stacks: 100 tasks that wait, each 100 coroutines deep, while the loop is busy; or 300 nested calls that work."""

import asyncio
from typing import Any

from programs.run import KINDS, Run, busy, kinds, main, work

TASKS = 100
COROUTINES = 100
FRAMES = 300
WORK_STEPS = 10_000


async def execute() -> None:
    await asyncio.sleep(86_400)


async def step(depth: int) -> None:
    await (step(depth - 1) if depth else execute())


async def query(run: Run, name: str) -> None:
    with run.query_span() as span:
        run.note_span(span, name)
        await step(COROUTINES - 4)  # the others are this one, the last step, execute and sleep


async def handle(run: Run, kind: int, leaves: int) -> None:
    with run.request_span():
        await asyncio.gather(*(query_kinds[kind](run, f"query_{kind}") for _ in range(leaves)))


query_kinds: list[Any] = kinds(query)
handle_kinds: list[Any] = kinds(handle)


def bottom() -> None:
    work(WORK_STEPS)


def descend(depth: int) -> None:
    if depth:
        descend(depth - 1)
    else:
        bottom()


def enter() -> None:
    descend(FRAMES - 3)


async def descend_for_ever(run: Run) -> None:
    with run.request_span() as span:
        run.note_span(span, "bottom")
        while True:
            enter()
            run.units += 1
            await asyncio.sleep(0)


async def program(run: Run) -> None:
    if run.options.shape == "frames":
        run.note_leaf("bottom", "enter")
        driver = asyncio.create_task(descend_for_ever(run))
        await run.measure()
    else:
        for kind in range(KINDS):
            run.note_leaf(f"query_{kind}", f"handle_{kind}", "execute")
        leaves = TASKS // KINDS
        run.leaf_share = TASKS / (TASKS + KINDS)
        requests = [asyncio.create_task(handle_kinds[kind](run, kind, leaves)) for kind in range(KINDS)]
        driver = asyncio.create_task(busy(run))
        await run.measure()
        assert not any(request.done() for request in requests)
    assert not driver.done()


if __name__ == "__main__":
    main(program, ("--shape", {"choices": ["coroutines", "frames"], "default": "coroutines"}))
