"""Threads: a deep stack over several chunks, a loop of its own, a generator; a callback takes the tape."""

import asyncio
import threading
from collections.abc import Iterator

from recording import PREFIX, begin_thread, finish, take

STOP = threading.Lock()
STOP.acquire()
DEPTH = 400


def deep(left: int) -> None:
    if left:
        deep(left - 1)
    else:
        rest()


def rest() -> None:
    STOP.acquire()


def items() -> Iterator[int]:
    rest()
    yield 1


def generating() -> None:
    for _ in items():
        pass


def called_from_c() -> None:
    sorted([1], key=lambda _: rest())


def looping() -> None:
    asyncio.run(in_thread())


async def in_thread() -> None:
    name_current("parent in thread")
    child = asyncio.create_task(leaf(), name="child in thread")
    asyncio.get_running_loop().call_later(0.02, rest)
    await child


def name_current(name: str) -> None:
    task = asyncio.current_task()
    assert task
    task.set_name(name)


async def leaf() -> None:
    await asyncio.get_running_loop().create_future()


async def waits() -> None:
    await leaf()


def callback() -> None:
    finish(take())


async def main() -> None:
    name_current("main")
    asyncio.get_running_loop().call_later(0.05, callback)
    await waits()


LOOP = "run > run > run_until_complete > run_forever > _run_once > _run > "
FROM_THREAD = "_bootstrap > _bootstrap_inner > run > "
DEEP = FROM_THREAD + "<lambda> > " + "deep > " * 59 + "<frames omitted> > " + "deep > " * 63 + "rest"
EXPECTED = {
    "deep": [DEEP],
    "generating": [FROM_THREAD + "generating > items > rest"],
    "called_from_c": [FROM_THREAD + "called_from_c > <lambda> > rest"],
    "looping": [FROM_THREAD + "looping > " + LOOP + "rest"],
    "child in thread": [FROM_THREAD + "looping > in_thread > leaf"],
    "main": [PREFIX + "main > waits > leaf"],
    "MainThread": [PREFIX + LOOP + "callback"],
}


def run() -> None:
    begin_thread("deep", lambda: deep(DEPTH), rest)
    for target in (generating, called_from_c, looping):
        begin_thread(target.__name__, target, rest)
    asyncio.run(main())


if __name__ == "__main__":
    run()
