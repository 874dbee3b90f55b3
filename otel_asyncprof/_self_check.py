"""Trust is earned at start: the native readers run over live objects, and Python says whether they read right."""

import asyncio
import contextvars
import sys
import threading
import types
from collections.abc import AsyncIterator, Callable
from typing import Any

from opentelemetry.context.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from . import _native, _runtime_context
from ._probe import PROBE_NAME, ProbeLoop
from .errors import ProfilerUnavailable

_TRACE_ID = 0x0123456789ABCDEF_FEDCBA9876543210
_SPAN_ID = 0x0F1E2D3C4B5A6978

Frame = tuple[str, str, int]


class Mismatch(Exception):
    """What a reader gave is not what Python says."""


def run(anchors: dict[str, int]) -> dict[str, str]:
    """Feature (threads, tasks, awaiters, spans) -> "" when the readers agree with Python, or what does not match."""
    runtime_context = _runtime_context.make(lambda _: None)  # first: the type of views exists from then on
    _native.prepare(anchors=anchors)
    checks: dict[str, Callable[[], None]] = {
        "threads": _check_threads,
        "tasks": _check_tasks,
        "awaiters": _check_awaiters,
        "spans": lambda: _check_spans(runtime_context),
    }
    return {feature: _outcome(check) for feature, check in checks.items()}


def _outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except Mismatch as mismatch:
        return str(mismatch)
    except MemoryError:
        raise ProfilerUnavailable("memory is short") from None
    except Exception as error:
        return f"the check itself failed: {type(error).__name__}: {error}"
    return ""


def _expect(what: str, read: object, said: object) -> None:
    if read != said:
        raise Mismatch(f"{what} reads {read!r}, Python says {said!r}")


def _describe(frame: types.FrameType) -> Frame:
    return (frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno)


def _check_threads() -> None:
    def inner() -> None:
        said, frame = [], sys._getframe()
        read = _native.read_thread()
        while frame:
            said.append(_describe(frame))
            frame = frame.f_back  # type: ignore[assignment]
        said.reverse()
        # The two calls stand on two lines of this very function.
        _expect("the depth of this thread's stack", len(read), len(said))
        _expect("this thread's stack", read[:-1], said[:-1])
        _expect("this thread's leaf", read[-1][:2], said[-1][:2])

    inner()
    context = contextvars.copy_context()
    moment = context.run(_native.read_moment)
    _expect("this thread's ident and context", moment[:2], (threading.get_ident(), id(context)))
    _expect("the holder of the interpreter's lock", _native.read_holds_gil(), True)


async def _outer(future: "asyncio.Future[None]") -> None:
    async for _ in _generator(future):
        pass


async def _generator(future: "asyncio.Future[None]") -> AsyncIterator[None]:
    await _inner(future)
    yield


async def _inner(future: "asyncio.Future[None]") -> None:
    await future


async def _note_moment(moments: list[tuple[int, int, int, int]]) -> None:
    moments.append(_native.read_moment())


def _check_tasks() -> None:
    loop = ProbeLoop()
    with loop.suspended(_outer(loop.create_future())) as (task,):
        coroutine: Any = task.get_coro()
        _expect("the set of tasks", id(task) in _native.read_tasks(), True)
        read = _native.read_task(id(task))
        _expect("a task's name", read["name"], PROBE_NAME)
        _expect("a task's outer frame", read["frames"][0], _describe(coroutine.cr_frame))
        _expect("a task's frames", [function for function, _, _ in read["frames"]], ["_outer", "_generator", "_inner"])
        _expect(
            "a task's lines",
            [line for _, _, line in read["frames"]],
            [_body_line(f) for f in (_outer, _generator, _inner)],
        )
        _expect("a suspended task", read["waiting"], True)
    moments: list[tuple[int, int, int, int]] = []
    with loop.suspended(_note_moment(moments)) as (task,):
        _expect("the loop and the task that run", moments[0][2:], (id(loop), id(task)))


def _body_line(function: Callable[..., Any]) -> int:
    """The line after the def: where each probe coroutine waits."""
    return function.__code__.co_firstlineno + 1


async def _gather(child: "asyncio.Task[Any]") -> None:
    await asyncio.gather(child)


async def _await(child: "asyncio.Task[Any]") -> None:
    await child


def _check_awaiters() -> None:
    loop = ProbeLoop()
    with (
        loop.suspended(loop.await_future(loop.create_future())) as (child,),
        loop.suspended(_await(child)) as (parent,),
    ):
        _expect("the awaiter of a task", _native.read_task(id(child))["awaiters"], [id(parent)])
    with (
        loop.suspended(loop.await_future(loop.create_future())) as (child,),
        loop.suspended(_gather(child)) as (parent,),
    ):
        _expect("the awaiter of a gathered task", _native.read_task(id(child))["awaiters"], [id(parent)])


def _check_spans(runtime_context: "_native.ContextVarsRuntimeContext | None") -> None:
    if runtime_context is None:
        raise Mismatch("OpenTelemetry's context is not kept in a context variable (OTEL_PYTHON_CONTEXT?)")
    span = NonRecordingSpan(
        SpanContext(_TRACE_ID, _SPAN_ID, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    )
    view = runtime_context.view(set_span_in_context(span, Context()))
    # With few and with many other variables the value hangs at other places of the hash trie.
    for others in (0, 40, 400):
        context = contextvars.Context()
        for i in range(others):
            other: contextvars.ContextVar[int] = contextvars.ContextVar(f"other_{i}")
            context.run(other.set, i)
        _expect("a context without a span", _native.read_link(id(context)), None)
        context.run(runtime_context._current_context.set, view)
        _expect(
            "a context's span",
            _native.read_link(id(context)),
            (_TRACE_ID.to_bytes(16, "big"), _SPAN_ID.to_bytes(8, "big")),
        )
