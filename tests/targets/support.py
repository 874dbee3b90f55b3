"""What the target programs share: work that can be measured, and what Python itself says about every stack."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import inspect
import os
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any

Frame = tuple[str, str, int, int]  # qualified name, file, line executing now, first line

REPORT: dict[str, Any] = {}
SNAPSHOTS: list[dict[str, Any]] = []
CAPTURE_OPTIONS: dict[str, Any] = {"rate": 200}

_ASYNCIO = os.path.dirname(asyncio.__file__)
_MACHINERY = {
    os.path.join(_ASYNCIO, name) for name in ("runners.py", "base_events.py", "selector_events.py", "unix_events.py")
}
_EVENTS = os.path.join(_ASYNCIO, "events.py")
_WRAPPERS = {"async_generator_asend", "async_generator_athrow", "anext_awaitable", "coroutine_wrapper"}
_given_names: list[tuple[asyncio.Task[Any], str]] = []
_chains_burnt: set[tuple[Frame, ...]] = set()


def burn(seconds: float) -> None:
    """Uses this much CPU time of the calling thread, on the line BURN_LINE."""
    end = _remember_running(sys._getframe()) + seconds
    while time.thread_time() < end: pass  # noqa: E701  # fmt: skip


BURN_LINE = burn.__code__.co_firstlineno + 3


def spin(seconds: float) -> None:
    """Uses this much CPU time and notes nothing: for programs in which many stacks work."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def name_me(name: str) -> None:
    """Names the current task, for children whose task is made by asyncio itself."""
    task = asyncio.current_task()
    assert task is not None
    task.set_name(name)
    _given_names.append((task, name))


def all_tasks() -> list[asyncio.Task[Any]]:
    """The unfinished tasks of every loop."""
    return [value for value in gc.get_objects() if issubclass(type(value), asyncio.Task) and not value.done()]


def restore_names() -> None:
    """Names again the tasks that CPython 3.13 called None, as it does to those of a task factory."""
    for task in all_tasks():
        if task.get_name() == "None" and getattr(task.get_coro(), "__qualname__", "") == "main":
            task.set_name("Task-1")
    for task, name in _given_names:
        task.set_name(name)


def is_machinery(frame: Frame) -> bool:
    """Whether rule R1 leaves this frame out of a task's stack."""
    function, file, _, _ = frame
    return (
        file in _MACHINERY
        or (file == _EVENTS and function == "Handle._run")
        or file.endswith(os.path.join("uvloop", "__init__.py"))
    )


def sync_stack(frame: FrameType | None) -> list[Frame]:
    """The frames a thread is executing, root first."""
    frames: list[Frame] = []
    while frame is not None:
        code = frame.f_code
        frames.append((code.co_qualname, code.co_filename, frame.f_lineno, code.co_firstlineno))
        frame = frame.f_back
    return frames[::-1]


def entry_frames(stack: list[Frame]) -> list[Frame]:
    """The synchronous part of a stack, up to where the loop was started."""
    first = next((index for index, frame in enumerate(stack) if is_machinery(frame)), len(stack))
    return stack[:first]


def await_chain(awaitable: Any) -> list[Frame]:
    """The suspended frames from a coroutine to what it waits for, as Python's own attributes give them."""
    frames: list[Frame] = []
    while awaitable is not None:
        if inspect.iscoroutine(awaitable):
            frame, following = awaitable.cr_frame, awaitable.cr_await
        elif inspect.isasyncgen(awaitable):
            frame, following = awaitable.ag_frame, awaitable.ag_await
        elif inspect.isgenerator(awaitable):
            frame, following = awaitable.gi_frame, awaitable.gi_yieldfrom
        elif type(awaitable).__name__ in _WRAPPERS:
            frame, following = None, next(filter(_has_frame, gc.get_referents(awaitable)), None)
        else:
            break
        if frame is not None:
            code = frame.f_code
            frames.append((code.co_qualname, code.co_filename, frame.f_lineno, code.co_firstlineno))
        awaitable = following
    return [frame for frame in frames if not is_machinery(frame)]


def _has_frame(value: Any) -> bool:
    return (
        inspect.iscoroutine(value)
        or inspect.isasyncgen(value)
        or inspect.isgenerator(value)
        or type(value).__name__ in _WRAPPERS
    )


def snapshot() -> dict[str, Any]:
    """Every unfinished task with its frames, and every thread with its stack and its entry, at this moment."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    threads = {names.get(ident, "?"): sync_stack(frame) for ident, frame in sys._current_frames().items()}
    return {
        "tasks": {task.get_name(): await_chain(task.get_coro()) for task in all_tasks()},
        "entry": {name: entry_frames(stack) for name, stack in threads.items()},
        "threads": threads,
    }


def _remember_running(frame: FrameType) -> float:
    """Keeps what Python says now, once for every distinct stack; gives the CPU time at which the work begins."""
    stack = sync_stack(frame)
    function, file, _, first_line = stack[-1]
    stack[-1] = (function, file, BURN_LINE, first_line)
    if tuple(stack) not in _chains_burnt:
        _chains_burnt.add(tuple(stack))
        SNAPSHOTS.append(snapshot() | _running(stack))
    return time.thread_time()


def _running(stack: list[Frame]) -> dict[str, Any]:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is None:
        return {"thread_running": {threading.current_thread().name: stack}}
    own = [frame for frame in stack[len(entry_frames(stack)) :] if not is_machinery(frame)]
    return {"running": {task.get_name(): own}}


class phase:
    """Profiles a block: entered around the part of a program that a test is about."""

    def __enter__(self) -> phase:
        from otel_asyncprof.testing import capture

        restore_names()
        self._capture = capture(**CAPTURE_OPTIONS)
        self._profile = self._capture.__enter__()
        self._cpu, self._wall = time.process_time(), time.perf_counter()  # what is seen begins now: not with the start
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        self._capture.__exit__(kind, error, trace)
        keep(self._profile, cpu, wall)


def keep(profile: Any, cpu: float = 0, wall: float = 0) -> None:
    """Adds a finished profile to the result, and what the process used meanwhile."""
    stats = dataclasses.asdict(profile.stats)
    REPORT.setdefault("captures", []).append({"samples": profile.samples, "stats": stats, "cpu": cpu, "wall": wall})


def tracer() -> Any:
    """A tracer of the global provider, made when first asked for."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
    return trace.get_tracer("targets")


def expect_span(function: str) -> None:
    """Reports what the work in this function must be linked to: the span that is current here, while it is recorded."""
    from opentelemetry import trace

    span = trace.get_current_span()
    REPORT.setdefault("spans", {})[function] = span.get_span_context().span_id if span.is_recording() else 0


def named(function: Any, name: str) -> Any:
    """A copy of a function under another name."""
    code = function.__code__.replace(co_name=name, co_qualname=name)
    return type(function)(code, function.__globals__, name, function.__defaults__, function.__closure__)
