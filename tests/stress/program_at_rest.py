"""A program that stands still in every way there is to wait: tasks, loops in threads, spans, plain threads.

No timer ends and nothing wakes up, however long it is looked at. With names: what a look must give of it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import Any

from sqlalchemy.util import await_only, greenlet_spawn
from targets import support
from targets.support import name_me, tracer

from otel_asyncprof import _anchors, _libraries, _native, _runtime_context

DEEP = 20  # awaits in a row: more than what is walked in turn with other tasks
TIMEOUT_SECONDS = 120
FAR_SECONDS = 1e6

KEPT: list[Any] = []
LOOPS: dict[str, asyncio.AbstractEventLoop] = {}
RELEASE = threading.Event()  # never set: every blocking call of the program waits for it
Ready = Callable[[], None]


def block() -> None:
    RELEASE.wait()


async def forever(name: str = "") -> None:
    if name:
        name_me(name)
    await asyncio.get_running_loop().create_future()


def start(name: str) -> asyncio.Task[None]:
    task = asyncio.create_task(forever(), name=name)
    KEPT.append(task)
    return task


async def in_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(forever(), name="member")


async def in_wait() -> None:
    await asyncio.wait([start("waited"), start("waited too")])


async def limited() -> None:
    await asyncio.wait_for(start("limited task"), FAR_SECONDS)


async def limited_coroutine() -> None:
    await asyncio.wait_for(forever("limited coroutine"), FAR_SECONDS)


async def completing() -> None:
    for first in asyncio.as_completed([start("completed"), start("completed too")]):
        await first


async def shielding() -> None:
    await asyncio.shield(start("shielded"))


async def awaiting(task: Awaitable[None]) -> None:
    await task


class Wrapped:
    """An awaitable of a generator's."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from forever().__await__()


@types.coroutine
def by_generator() -> Generator[Any, None, None]:
    yield from Wrapped().__await__()


async def wrapping() -> None:
    await by_generator()


async def numbers() -> AsyncIterator[int]:
    try:
        yield 0
        await descend(DEEP)
    except ZeroDivisionError:
        await forever()


async def descend(depth: int) -> None:
    if depth:
        await descend(depth - 1)
    else:
        await forever()


async def iterating() -> None:
    async for _ in numbers():
        pass


async def throwing() -> None:
    generator: Any = numbers()
    await generator.asend(None)
    await generator.athrow(ZeroDivisionError())


async def next_of() -> None:
    generator = numbers()
    await anext(generator)
    await anext(generator, None)


async def await_each_other() -> None:
    """Two tasks that await each other, one of them a leaf too."""
    tasks: dict[str, asyncio.Task[None]] = {}

    async def ping() -> None:
        await asyncio.sleep(0)
        await tasks["pong"]

    async def pong() -> None:
        await asyncio.sleep(0)
        await asyncio.gather(tasks["ping"], start("leaf of a cycle"))

    tasks.update(ping=asyncio.create_task(ping(), name="ping"), pong=asyncio.create_task(pong(), name="pong"))
    KEPT.append(tasks)
    await forever()


async def request() -> None:
    """A span, a child span of a task of its own, and children that nobody awaits in both."""
    with tracer().start_as_current_span("request"):
        start("spawned")
        await asyncio.gather(asyncio.create_task(query(), name="query"), start("sibling"))


async def query() -> None:
    with tracer().start_as_current_span("query"):
        start("spawned by query")
        await shielding()


async def ended() -> None:
    """The span that its child inherits has ended."""
    with tracer().start_as_current_span("ended"):
        start("of an ended span")
    await forever()


WAYS: list[Callable[[], Coroutine[Any, Any, None]]] = [
    *(in_group, in_wait, limited, limited_coroutine, completing, wrapping, iterating, throwing, next_of),
    *(await_each_other, request, ended),
]


def stand_still(ready: Ready) -> None:
    """From here on no timer of the loop ends."""
    asyncio.get_running_loop().time = lambda: -FAR_SECONDS  # type: ignore[method-assign]
    ready()


async def main(ready: Ready) -> None:
    name_me("main")
    LOOPS["main"] = asyncio.get_running_loop()
    tasks = [asyncio.create_task(way(), name=way.__name__) for way in WAYS]
    shared = start("shared")
    asyncio.get_running_loop().call_later(0.2, stand_still, ready)  # looks will tell whether all rest
    await asyncio.gather(*tasks, awaiting(shared), awaiting(shared))


async def eager_child(ready: Ready) -> None:
    name_me("eager child")
    with tracer().start_as_current_span("eager"):
        ready()
        block()


async def maker(ready: Ready) -> None:
    name_me("maker")
    await asyncio.sleep(0)
    await asyncio.create_task(eager_child(ready))


async def blocked(ready: Ready) -> None:
    """Blocks its loop inside a task, which from 3.12 on is in its eager first step."""
    loop = asyncio.get_running_loop()
    name_me("blocked")
    beside = loop.create_task(forever(), name="beside the blocked")
    if sys.version_info >= (3, 12):
        loop.set_task_factory(asyncio.eager_task_factory)
    await asyncio.gather(beside, maker(ready))


async def block_in_greenlet(ready: Ready) -> None:
    """Sync code on a stack of its own blocks the loop of the task it runs for; beside it a task waits in such code."""
    name_me("blocked in a greenlet")
    waiting = asyncio.create_task(greenlet_spawn(wait_in_greenlet), name="waits in a greenlet")
    KEPT.append(waiting)
    await asyncio.sleep(0)
    _native.read_task(id(waiting))  # from now on it is known in which greenlet the loop runs

    def sync_code() -> None:
        ready()
        block()

    await greenlet_spawn(sync_code)


def wait_in_greenlet() -> None:
    await_only(forever())


def nested(ready: Ready) -> None:
    """A loop that a task of another loop runs in the same thread."""

    async def outer() -> None:
        name_me("outer")
        asyncio._set_running_loop(None)
        asyncio.new_event_loop().run_until_complete(inner())

    async def inner() -> None:
        name_me("inner")
        ready()
        block()

    asyncio.new_event_loop().run_until_complete(outer())


def in_callback(ready: Ready) -> None:
    """A loop that is blocked by a callback of no task."""

    def callback() -> None:
        ready()
        block()

    loop = asyncio.new_event_loop()
    loop.call_soon(callback)
    loop.run_forever()


def plain(ready: Ready) -> None:
    with tracer().start_as_current_span("of a plain thread"):
        ready()
        block()


def busy_once(ready: Ready) -> None:
    """A thread without a span that has used CPU time."""
    support.spin(0.2)
    ready()
    block()


def run_main(ready: Ready) -> None:
    asyncio.run(main(ready))


def run_blocked(ready: Ready) -> None:
    asyncio.run(blocked(ready))


def run_greenlets(ready: Ready) -> None:
    asyncio.run(block_in_greenlet(ready))


def run_threads(bodies: dict[str, Callable[[Ready], object]]) -> None:
    """Starts a thread for each body, one after the other, and returns when all have said that they are there."""
    for name, body in bodies.items():
        there = threading.Event()
        threading.Thread(target=body, args=(there.set,), name=name, daemon=True).start()
        assert there.wait(TIMEOUT_SECONDS), name


def bring_to_rest() -> None:
    """Starts everything; on return it is at rest, or will be in a moment."""
    tracer()
    run_threads({"plain span": plain})  # before our runtime context: its context has no view
    _runtime_context.install()
    _native.prepare(anchors=_anchors.collect())
    _libraries.learn(thoroughly=True)
    bodies = {"loop": run_main, "blocked": run_blocked, "nested": nested, "callback": in_callback}
    bodies["greenlets"] = run_greenlets
    if sys.version_info >= (3, 14):
        del bodies["nested"]  # asyncio itself refuses it
    run_threads(bodies | {"span": plain, "busy once": busy_once})
