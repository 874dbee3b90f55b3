"""N suspended tasks of 3 to 5 coroutines under gathers, while the loop is busy with short turns, or idle."""

import asyncio
from itertools import count
from typing import Any

from programs.run import KINDS, Run, busy, kinds, main

LEAVES_OF_A_REQUEST = 9  # a request and its leaves are ten tasks


async def execute() -> None:
    await asyncio.sleep(86_400)


async def cursor() -> None:
    await execute()


async def connection() -> None:
    await cursor()


LAYERS = (execute, cursor, connection)


async def query(run: Run, name: str, depth: int) -> None:
    with run.query_span() as span:
        run.note_span(span, name)
        run.note_task()
        await LAYERS[depth]()


async def compute(run: Run, depth: int) -> None:
    run.note_task()
    await LAYERS[depth]()


async def handle(run: Run, kind: int, leaves: int) -> None:
    with run.request_span() as span:
        run.note_span(span, f"compute_{kind}")
        await asyncio.gather(
            *(
                query_kinds[kind](run, f"query_{kind}", leaf % 3)
                if leaf % 2 == 0  # the others run within the request's span
                else compute_kinds[kind](run, leaf % 3)
                for leaf in range(leaves)
            )
        )


query_kinds: list[Any] = kinds(query)
compute_kinds: list[Any] = kinds(compute)
handle_kinds: list[Any] = kinds(handle)


async def program(run: Run) -> None:
    tasks = run.options.tasks
    requests: list[asyncio.Task[None]] = []
    for number in count():
        missing = tasks - number * (LEAVES_OF_A_REQUEST + 1)
        if missing < 2:
            break
        kind = number % KINDS
        leaves = min(LEAVES_OF_A_REQUEST, missing - 1)
        requests.append(asyncio.create_task(handle_kinds[kind](run, kind, leaves)))
    for kind in range(KINDS):
        run.note_leaf(f"query_{kind}", f"handle_{kind}", "execute")
        run.note_leaf(f"compute_{kind}", f"handle_{kind}", "execute")
    run.leaf_share = 1 - len(requests) / tasks
    for _ in range(3):  # requests, leaves and their sleeps have begun
        await asyncio.sleep(0)
    driver = asyncio.create_task(busy(run)) if run.options.loop == "busy" else None
    await run.measure()
    if driver is None:
        del run.figures["units"]
    assert not any(request.done() for request in requests)


if __name__ == "__main__":
    main(
        program,
        ("--tasks", {"type": int, "default": 1000}),
        ("--loop", {"choices": ["busy", "idle"], "default": "busy"}),
    )
