"""Suspended programs, what the native readers say of them, and what Python itself says."""

from __future__ import annotations

import asyncio
import gc
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from otel_asyncprof import _anchors, _native
from otel_asyncprof._probe import ProbeLoop

Frame = tuple[str, str, int]
Tasks = dict[str, asyncio.Task[Any]]
GENERATORS = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)
WRAPPERS = {
    "async_generator_asend",
    "async_generator_athrow",
    "coroutine_wrapper",
    "anext_awaitable",
}
MAX_STRING_BYTES = 16384
TURNS = 40  # of the loop, after which a program of a test stands still


def prepare() -> None:
    """The readers may be called from here on."""
    _native.prepare(anchors=_anchors.collect())


def settle(loop: asyncio.AbstractEventLoop) -> None:
    """Lets the loop do all that it can do without waiting."""
    for _ in range(TURNS):
        loop.call_soon(loop.stop)
        loop.run_forever()


@contextmanager
def event_loop(**options: Any) -> Iterator[asyncio.AbstractEventLoop]:
    """A real loop; at the end its tasks are cancelled."""
    loop = asyncio.new_event_loop()
    if options:
        loop.set_task_factory(options["task_factory"])
    try:
        yield loop
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        settle(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@contextmanager
def standing(main: Coroutine[Any, Any, Any], **options: Any) -> Iterator[dict[str, asyncio.Task[Any]]]:
    """The tasks of a program that stands still, by name; main runs in the task of that name."""
    prepare()
    with event_loop(**options) as loop:
        task = loop.create_task(main)
        task.set_name("main")
        settle(loop)
        yield {task.get_name(): task for task in asyncio.all_tasks(loop)}


@contextmanager
def on_real_loop(make: Callable[[asyncio.Future[None]], Coroutine[Any, Any, Any]]) -> Iterator[asyncio.Task[Any]]:
    """A task that waits for a future, on asyncio's own loop."""
    with event_loop() as loop:
        task = loop.create_task(make(loop.create_future()))
        settle(loop)
        yield task


@contextmanager
def on_probe_loop(make: Callable[[asyncio.Future[None]], Coroutine[Any, Any, Any]]) -> Iterator[asyncio.Task[Any]]:
    """A task that waits for a future, driven by hand."""
    loop = ProbeLoop()
    with loop.suspended(make(loop.create_future())) as (task,):
        yield task


def describe(frame: types.FrameType) -> Frame:
    """A frame as the readers give it; lone surrogates are escaped in what they read."""
    return as_read(frame.f_code.co_qualname), as_read(frame.f_code.co_filename), frame.f_lineno


def as_read(text: str) -> str:
    """A string in UTF-8, which holds no lone surrogates and, when it is too long, ends in an ellipsis."""
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) <= MAX_STRING_BYTES - 9:
        return encoded.decode()
    kept = 0
    for position, character in enumerate(text):
        if kept > MAX_STRING_BYTES - 9:
            return text[:position].encode("utf-8", "backslashreplace").decode() + "…"
        kept += len(character.encode("utf-8", "backslashreplace"))
    return encoded.decode()


def python_stack() -> list[Frame]:
    """The calling function's stack, root first."""
    frames, frame = [], sys._getframe(1)
    while frame:
        frames.append(describe(frame))
        frame = frame.f_back  # type: ignore[assignment]
    return frames[::-1]


def await_chain(outermost: Any) -> list[Frame]:
    """What a suspended coroutine awaits, as far as there are frames; the garbage collector looks into C awaitables."""
    frames: list[Frame] = []
    awaited = outermost
    while awaited is not None:
        if type(awaited).__name__ in WRAPPERS:
            (awaited,) = [
                held for held in gc.get_referents(awaited) if isinstance(held, GENERATORS) or in_wrapper(held)
            ]
            continue
        prefix = next((name for name in ("cr", "gi", "ag") if hasattr(awaited, f"{name}_frame")), None)
        if prefix is None:
            return frames
        frames.append(describe(getattr(awaited, f"{prefix}_frame")))
        awaited = getattr(awaited, {"cr": "cr_await", "gi": "gi_yieldfrom", "ag": "ag_await"}[prefix])
    return frames


def in_wrapper(held: object) -> bool:
    """Whether an object is one of the C awaitables."""
    return type(held).__name__ in WRAPPERS


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def named(name: str) -> None:
    """Waits in whatever task it was given to, under this name."""
    await asyncio.sleep(0)  # 3.13.0 names an eager task after its first step
    task = asyncio.current_task()
    assert task
    task.set_name(name)
    await forever()


def start(name: str, coroutine: Coroutine[Any, Any, Any] | None = None) -> asyncio.Task[Any]:
    """A task of that name."""
    return asyncio.create_task(coroutine or forever(), name=name)


async def wait_on(awaitable: Awaitable[Any]) -> None:
    """An awaiting task's coroutine."""
    await awaitable


def awaiters(tasks: Tasks, name: str) -> list[str]:
    """The names of the tasks that await one, sorted; each is a live task."""
    by_address = {id(task): of for of, task in tasks.items()}
    return sorted(by_address[address] for address in _native.read_task(id(tasks[name]))["awaiters"])


def read_all(main: Coroutine[Any, Any, Any], **options: Any) -> dict[str, list[str]]:
    """Task -> its awaiters, of a whole program."""
    with standing(main, **options) as tasks:
        return {name: awaiters(tasks, name) for name in tasks}


seen: list[tuple[list[Frame], list[Frame]]] = []


def look(*_: object) -> int:
    """Reads this thread's stack and asks Python for it, on one line."""
    seen.append((_native.read_thread(), python_stack()))
    return 0


def compared(call: Callable[[], object]) -> list[str]:
    """The names below this function, from the one stack that was looked at; both views of it are equal."""
    prepare()
    seen.clear()
    call()
    ((read, said),) = seen
    assert read == said
    names = [name for name, _, _ in read]
    return names[names.index("compared") + 1 : -1]
