"""Addresses of objects from which the native readers start: types, asyncio's task sets, interned names.

Everything here is kept alive for as long as the process runs, so that an address never comes to mean another object.
"""

import asyncio
import asyncio.base_events
import asyncio.futures
import asyncio.taskgroups
import asyncio.tasks
import collections
import contextvars
import functools
import gc
import os
import sys
import threading
import types
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import opentelemetry.context

from . import _native, _runtime_context
from ._probe import ProbeLoop
from .errors import ProfilerUnavailable

# Enough variables for the root of their hash trie to be an array node, whatever their hashes.
_VARIABLES_FOR_ARRAY_NODE = 256

_held: dict[str, Any] = {}


def collect() -> dict[str, int]:
    """Name -> address, for all that the extension knows; ProfilerUnavailable when asyncio's tasks are not in C."""
    if not _held:
        if not hasattr(asyncio.tasks, "_CTask"):
            # It takes no more than an "import _asyncio" before the first "import asyncio".
            raise ProfilerUnavailable(
                "asyncio runs without its C part (_asyncio): import asyncio before anything of it"
            )
        _held.update(_types() | _asyncio_objects() | _asyncio_code() | _names() | _contexts())
        _held["threads"] = threading._active  # type: ignore[attr-defined]
        _held["none"] = None
        _held["false_object"] = False
    return {name: id(held) for name, held in _held.items()}


def asyncio_directory() -> str:
    """The directory of asyncio's own source files, as its code objects name it."""
    return os.path.dirname(asyncio.BaseEventLoop.run_forever.__code__.co_filename)


async def _async_generator() -> AsyncGenerator[None, None]:
    yield


async def _coroutine() -> None:
    pass


def _types() -> dict[str, type]:
    generator = _async_generator()
    asend, athrow, anext_awaitable = generator.__anext__(), generator.aclose(), anext(generator, None)
    coroutine = _coroutine()
    wrapper = coroutine.__await__()
    found = {
        "type_code": types.CodeType,
        "type_coroutine": types.CoroutineType,
        "type_generator": types.GeneratorType,
        "type_async_generator": types.AsyncGeneratorType,
        "type_asend": type(asend),
        "type_athrow": type(athrow),
        "type_coroutine_wrapper": type(wrapper),
        "type_anext": type(anext_awaitable),
        "type_task": asyncio.tasks._CTask,  # type: ignore[attr-defined]
        "type_future": asyncio.futures._CFuture,  # type: ignore[attr-defined]
        "type_gathering": asyncio.tasks._GatheringFuture,  # type: ignore[attr-defined]
        "type_weakref": weakref.ref,
        "type_function": types.FunctionType,
        "type_method": types.MethodType,
        "type_builtin": types.BuiltinFunctionType,
        "type_cell": types.CellType,
        "type_partial": functools.partial,
        "type_deque": collections.deque,
        "type_queue": asyncio.Queue,
        "type_str": str,
        "type_int": int,
    }
    # Never to be awaited: closing them keeps Python from warning about that.
    unawaited: list[Any] = [asend, athrow, anext_awaitable, wrapper]
    for awaitable in unawaited:
        awaitable.close()
    coroutine.close()
    return found


def _asyncio_objects() -> dict[str, Any]:
    """The sets of tasks, and the builtin by which a future wakes the task that awaits it."""
    # The C module must not be imported before asyncio itself, and so not by name.
    # 3.12 split _all_tasks into two; from 3.14 on the C module keeps a set of its own, where foreign tasks register.
    python_tasks = getattr(asyncio.tasks, "_scheduled_tasks", None)
    if python_tasks is None:
        python_tasks = asyncio.tasks._all_tasks  # type: ignore[attr-defined]
    # Elsewhere the module's state holds free objects too: to be handed a reference to one would free it twice.
    referents = gc.get_referents(sys.modules["_asyncio"]) if _native.TASKS_IN_THREADS else []
    inside = [each for each in referents if type(each) is weakref.WeakSet]
    scheduled: Any = inside[0] if inside else python_tasks
    loop = ProbeLoop()
    future = loop.create_future()
    with loop.suspended(loop.await_future(future)):
        wakeup = future._callbacks[0][0]
    return {
        "scheduled_tasks": scheduled.data,
        "python_tasks": python_tasks.data if python_tasks is not scheduled else None,
        "eager_tasks": getattr(asyncio.tasks, "_eager_tasks", None),
        "current_tasks": asyncio.tasks._current_tasks,  # type: ignore[attr-defined]
        "task_wakeup": wakeup,
        # A function's globals tell whose function it is.
        "globals_tasks": vars(asyncio.tasks),
        "globals_task_groups": vars(asyncio.taskgroups),
        "globals_base_events": vars(asyncio.base_events),
    }


def _inner_code(function: types.FunctionType, name: str) -> types.CodeType | None:
    """The code of a function that is made inside another."""
    for constant in function.__code__.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    return None


def _asyncio_code() -> dict[str, types.CodeType | None]:
    """The code of asyncio's functions in which a task waits for other tasks; None for those that this version lacks."""
    tasks: Any = asyncio.tasks
    group = asyncio.TaskGroup
    iterator = getattr(tasks, "_AsCompletedIterator", None)  # 3.13; before, a function inside as_completed
    return {
        "code_wait": tasks._wait.__code__,
        # From 3.12 on it has no future of its own, and awaits the task itself.
        "code_wait_for": tasks.wait_for.__code__ if "waiter" in tasks.wait_for.__code__.co_varnames else None,
        "code_cancel_and_wait": tasks._cancel_and_wait.__code__,
        "code_group_end": getattr(group, "_aexit", group.__aexit__).__code__,
        "code_next_completed": (
            iterator._wait_for_one.__code__ if iterator else _inner_code(tasks.as_completed, "_wait_for_one")
        ),
        "code_shield": _inner_code(tasks.shield, "_outer_done_callback"),  # readers take the last of its free variables
    }


def _names() -> dict[str, str | None]:
    # Attribute names and the like are interned: readers compare addresses.
    return {
        "name_running_loop": sys.intern("__asyncio_running_event_loop__"),
        "name_parent_task": sys.intern("_parent_task"),
        "name_on_completed": sys.intern("_on_completed_fut"),
        "name_children": sys.intern("_children"),
        "name_todo": sys.intern("_todo") if hasattr(asyncio.tasks, "_AsCompletedIterator") else None,
        "name_getters": sys.intern("_getters"),
        "name_done": sys.intern("_done"),
        "name_name": sys.intern("_name"),
        "name_context": sys.intern("_context"),
        "name_end_time": sys.intern("_end_time"),
    }


def _contexts() -> dict[str, Any]:
    small, large = contextvars.Context(), contextvars.Context()
    variables: list[contextvars.ContextVar[None]] = [
        contextvars.ContextVar(f"otel_asyncprof_{i}") for i in range(_VARIABLES_FOR_ARRAY_NODE)
    ]
    small.run(variables[0].set, None)
    for variable in variables:
        large.run(variable.set, None)
    runtime_context = opentelemetry.context._RUNTIME_CONTEXT
    return {
        "context_bitmap": small,
        "context_array": large,
        "context_var": getattr(runtime_context, "_current_context", None),
        "span_key": _runtime_context.SPAN_KEY,
        "type_span_context_holder": opentelemetry.context.Context,
    }
