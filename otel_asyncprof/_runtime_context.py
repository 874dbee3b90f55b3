"""Puts span views in the place where OpenTelemetry keeps its current context, and takes them out again.

The sampler reads spans from SpanContextViews only, which attach() of our runtime context sets in the very ContextVar
that OpenTelemetry uses. Contexts that existed before are given their view here: see _backfill().
"""

import asyncio
import asyncio.events
import asyncio.tasks
import contextvars
import gc
import logging
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import opentelemetry.context
from opentelemetry.context.context import Context
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.trace import NonRecordingSpan
from opentelemetry.trace.propagation import _SPAN_KEY

from otel_asyncprof import _native
from otel_asyncprof.span_processor import notice_span_processor

# The key under which a Context holds its span.
SPAN_KEY = _SPAN_KEY
MAX_PENDING = 256
MAX_RETRIES = 8
MAX_SNAPSHOT_TRIES = 1000

# Ours is a ContextVarsRuntimeContext to whoever asks.
ContextVarsRuntimeContext.register(_native.ContextVarsRuntimeContext)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Pending:
    """A context that was entered by its task. Kept alive by neither reference."""

    context: "weakref.ref[contextvars.Context]"
    task: "weakref.ref[Any]"
    tries: int


@dataclass
class _Installed:
    """What is in place now, and what was there before."""

    original: Any
    context_var: contextvars.ContextVar[Any]
    native: _native.ContextVarsRuntimeContext
    pending: list[_Pending] = field(default_factory=list)


_installed: _Installed | None = None


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
    unique = {id(task): task for tasks in (*sets, _native.listed_tasks()) for task in _snapshot(tasks)}
    return [task for task in unique.values() if _is_live(task)]


def _is_live(task: Any) -> bool:
    try:
        return not task.done()
    except Exception:  # a task class may be anybody's code
        return False


def task_context(task: Any) -> contextvars.Context | None:
    """Returns the context in which a task runs.

    Before 3.12 a C task shows its context to the garbage collector only, before the context of its done callbacks.
    """
    try:
        get_context = getattr(task, "get_context", None)
        context = get_context() if get_context is not None else getattr(task, "_context", None)
    except Exception:  # a task class may be anybody's code
        context = None
    if context is None:
        context = next((each for each in gc.get_referents(task) if type(each) is contextvars.Context), None)
    return context if type(context) is contextvars.Context else None


def make(notice: Callable[[Any], object]) -> "_native.ContextVarsRuntimeContext | None":
    """Makes our runtime context over OpenTelemetry's ContextVar; None when contexts are kept in another way."""
    original: Any = opentelemetry.context._RUNTIME_CONTEXT
    context_var = getattr(original, "_current_context", None)
    if type(original) is not ContextVarsRuntimeContext or not isinstance(context_var, contextvars.ContextVar):
        return None
    return _native.ContextVarsRuntimeContext(
        context_var,
        Context,
        _SPAN_KEY,
        NonRecordingSpan,
        asyncio.tasks._current_tasks,  # type: ignore[attr-defined]
        asyncio.events._get_running_loop,
        notice,
    )


def install() -> bool:
    """Puts our runtime context in place and gives existing contexts views; false, with a warning, if that cannot be."""
    global _installed
    if _installed is not None:
        return True
    original: Any = opentelemetry.context._RUNTIME_CONTEXT
    native: Any = make(notice_span_processor)
    if native is None:
        name = f"{type(original).__module__}.{type(original).__qualname__}"
        _logger.warning("samples will not be linked to spans: OpenTelemetry's contexts are kept by %s", name)
        return False
    _installed = _Installed(original, native._current_context, native)
    opentelemetry.context._RUNTIME_CONTEXT = native
    _backfill(_installed)
    return True


def uninstall() -> None:
    """Puts back the object that was there; views that contexts still hold are contexts like any other."""
    global _installed
    installed = _installed
    current: Any = opentelemetry.context._RUNTIME_CONTEXT
    if installed is not None and current is installed.native:
        opentelemetry.context._RUNTIME_CONTEXT = installed.original
    _installed = None


def retry_backfill() -> int:
    """Tries again the contexts that were entered by a running task; returns how many are left."""
    installed = _installed
    if installed is None:
        return 0
    pending, installed.pending = installed.pending, []
    for each in pending:
        context, task = each.context(), each.task()
        if context is not None and task is not None and not task.done():
            _backfill_one(installed, context, task, each.tries)
    return len(installed.pending)


def _backfill(installed: _Installed) -> None:
    """Gives views to the contexts of all live tasks and to the caller's own.

    Who activated a span that is found there cannot be known: tasks that inherited it hold the same object. Its owner is
    the task whose context it is, so that no stack is put on a task by guess: a child that nobody awaits is its own
    root. A context that several tasks share gets no owner.
    """
    owners: dict[int, tuple[contextvars.Context, Any]] = {}
    for task in live_tasks():
        context = task_context(task)
        if context is not None:
            owners[id(context)] = (context, None if id(context) in owners else task)
    current = asyncio.current_task() if asyncio.events._get_running_loop() is not None else None
    own = task_context(current) if current is not None else None
    owner = owners.pop(id(own), (own, current))[1]
    value = installed.context_var.get()
    view = installed.native.view(value, owner)
    if view is not value:
        installed.context_var.set(view)
    for context, task in owners.values():
        _backfill_one(installed, context, task, 0)


def _backfill_one(installed: _Installed, context: contextvars.Context, task: Any, tries: int) -> None:
    try:
        installed.native.backfill(context, task)
    except RuntimeError:
        if task is not None and tries < MAX_RETRIES and len(installed.pending) < MAX_PENDING:
            installed.pending.append(_Pending(weakref.ref(context), weakref.ref(task), tries + 1))
