"""Puts span views in the place where OpenTelemetry keeps its current context, and takes them out again.

The sampler can read a span only from a SpanContextView, which attach() of our runtime context sets in the very ContextVar that
OpenTelemetry uses. Contexts that existed before are given their view here: see RuntimeContextSwap.backfill.
"""

import asyncio
import asyncio.events
import asyncio.tasks
import contextvars
import gc
import weakref
from collections.abc import Iterable
from typing import Any

import opentelemetry.context
from opentelemetry.context.context import Context
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.trace import NonRecordingSpan
from opentelemetry.trace.propagation import _SPAN_KEY

from otel_asyncprof import _native

MAX_PENDING = 256
MAX_RETRIES = 8
MAX_SNAPSHOT_TRIES = 1000

_Pending = tuple["weakref.ref[contextvars.Context]", "weakref.ref[Any]", int]


class UnsupportedRuntimeContext(RuntimeError):
    """The application has a runtime context of its own, which we do not replace."""


def _snapshot(tasks: Iterable[Any]) -> list[Any]:
    """Copies a set that other threads change meanwhile."""
    for _ in range(MAX_SNAPSHOT_TRIES):
        try:
            return list(tasks)
        except RuntimeError:
            continue
    return []


def live_tasks() -> list[Any]:
    """Returns the unfinished tasks of every loop in every thread."""
    sets = (getattr(asyncio.tasks, name, ()) for name in ("_all_tasks", "_scheduled_tasks", "_eager_tasks"))
    unique = {id(task): task for tasks in sets for task in _snapshot(tasks)}
    return [task for task in unique.values() if not task.done()]


def task_context(task: Any) -> contextvars.Context | None:
    """Returns the context in which a task runs.

    Before 3.12 a C task shows its context to nobody but the garbage collector, to which it names it before that of its done
    callbacks.
    """
    get_context = getattr(task, "get_context", None)
    context = get_context() if get_context is not None else getattr(task, "_context", None)
    if context is None:
        context = next((each for each in gc.get_referents(task) if type(each) is contextvars.Context), None)
    return context if type(context) is contextvars.Context else None


class RuntimeContextSwap:
    """Our runtime context in the place of OpenTelemetry's, over the same ContextVar."""

    def __init__(self) -> None:
        self._original: Any = None
        self._context_var: contextvars.ContextVar[Any] | None = None
        self._native: _native.ContextVarsRuntimeContext | None = None
        self._pending: list[_Pending] = []

    @property
    def native(self) -> _native.ContextVarsRuntimeContext | None:
        """The runtime context that is installed."""
        return self._native

    @property
    def context_var(self) -> contextvars.ContextVar[Any] | None:
        """The variable that holds the current context while we are installed."""
        return self._context_var

    def install(self) -> None:
        """Puts our runtime context in place and gives existing contexts their views; UnsupportedRuntimeContext if it cannot."""
        if self._native is not None:
            return
        original = opentelemetry.context._RUNTIME_CONTEXT
        context_var = getattr(original, "_current_context", None)
        if type(original) is not ContextVarsRuntimeContext or not isinstance(context_var, contextvars.ContextVar):
            name = f"{type(original).__module__}.{type(original).__qualname__}"
            raise UnsupportedRuntimeContext(f"spans cannot be read: OpenTelemetry's contexts are kept by {name}")
        self._native = _native.ContextVarsRuntimeContext(
            context_var,
            Context,
            _SPAN_KEY,
            NonRecordingSpan,
            asyncio.tasks._current_tasks,  # type: ignore[attr-defined]
            asyncio.events._get_running_loop,
        )
        self._original, self._context_var = original, context_var
        opentelemetry.context._RUNTIME_CONTEXT = self._native  # type: ignore[assignment]
        self.backfill()

    def uninstall(self) -> None:
        """Puts back the object that was there; views that contexts still hold are contexts like any other."""
        if self._native is not None and opentelemetry.context._RUNTIME_CONTEXT is self._native:
            opentelemetry.context._RUNTIME_CONTEXT = self._original
        self._original = self._context_var = self._native = None
        self._pending = []

    def backfill(self) -> None:
        """Gives views to the contexts of all live tasks and to the caller's own.

        Who activated a span that is found there cannot be known. Its owner is the task whose context it is, so that no stack is
        put on a task by guess; a context that several tasks share gets no owner.
        """
        runtime, context_var = self._native, self._context_var
        if runtime is None or context_var is None:
            return
        owners: dict[int, tuple[contextvars.Context, Any]] = {}
        for task in live_tasks():
            context = task_context(task)
            if context is not None:
                owners[id(context)] = (context, None if id(context) in owners else task)
        current = asyncio.current_task() if asyncio.events._get_running_loop() is not None else None
        own = task_context(current) if current is not None else None
        owner = owners.pop(id(own), (own, current))[1] if own is not None else None
        value = context_var.get()
        view = runtime.view(value, owner)
        if view is not value:
            context_var.set(view)
        for context, task in owners.values():
            self._backfill_one(runtime, context, task, 0)

    def retry_backfill(self) -> int:
        """Tries again the contexts that were entered by a running task; returns how many are left."""
        runtime, pending, self._pending = self._native, self._pending, []
        for context_reference, task_reference, tries in pending:
            context, task = context_reference(), task_reference()
            if runtime is not None and context is not None and task is not None and not task.done():
                self._backfill_one(runtime, context, task, tries)
        return len(self._pending)

    def _backfill_one(
        self, runtime: _native.ContextVarsRuntimeContext, context: contextvars.Context, task: Any, tries: int
    ) -> None:
        try:
            runtime.backfill(context, task)
        except RuntimeError:
            if task is not None and tries < MAX_RETRIES and len(self._pending) < MAX_PENDING:
                self._pending.append((weakref.ref(context), weakref.ref(task), tries + 1))
