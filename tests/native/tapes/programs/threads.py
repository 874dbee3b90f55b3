"""Threads: a deep stack over several chunks, a loop of its own, a generator; a callback takes the tape."""

import asyncio
import threading
from collections.abc import Iterator

from recording import PREFIX, finish, take

STOP = threading.Lock()
STOP.acquire()
DEPTH = 400


def deep(left: int, ready: threading.Event) -> None:
    if left:
        deep(left - 1, ready)
    else:
        rest(ready)


def rest(ready: threading.Event) -> None:
    ready.set()
    STOP.acquire()


def items(ready: threading.Event) -> Iterator[int]:
    rest(ready)
    yield 1


def generating(ready: threading.Event) -> None:
    for _ in items(ready):
        pass


def called_from_c(ready: threading.Event) -> None:
    sorted([1], key=lambda _: rest(ready))


def looping(ready: threading.Event) -> None:
    asyncio.run(in_thread(ready))


async def in_thread(ready: threading.Event) -> None:
    name_current("parent in thread")
    child = asyncio.create_task(leaf(), name="child in thread")
    asyncio.get_running_loop().call_later(0.02, rest, ready)
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


def begin(target: object, *arguments: object) -> None:
    ready = threading.Event()
    name = getattr(target, "__name__", "")
    threading.Thread(target=target, args=[*arguments, ready], name=name, daemon=True).start()  # type: ignore[arg-type]
    ready.wait()


async def main() -> None:
    name_current("main")
    asyncio.get_running_loop().call_later(0.05, callback)
    await waits()


LOOP = "run > run > run_until_complete > run_forever > _run_once > _run > "
FROM_THREAD = "_bootstrap > _bootstrap_inner > run > "
DEEP = FROM_THREAD + "deep > " * 60 + "<frames omitted> > " + "deep > " * 63 + "rest"
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
    begin(deep, DEPTH)
    for target in (generating, called_from_c, looping):
        begin(target)
    asyncio.run(main())


if __name__ == "__main__":
    run()
