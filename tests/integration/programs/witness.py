"""Does what a profiler could disturb and prints what came of it, as JSON: the same with a profiler as without."""

from __future__ import annotations

import asyncio
import bdb
import contextvars
import gc
import inspect
import io
import json
import pickle
import random
import re
import sys
import threading
import time
import traceback
import weakref
from collections.abc import AsyncIterator
from types import FrameType
from typing import Any

from opentelemetry import baggage, context, trace

tracer = trace.get_tracer("witness")
SEEN: dict[str, Any] = {}
NEVER = 3600.0  # a loaded machine is slow at times


def plain(value: object) -> str:
    """A text without addresses and ids."""
    return re.sub(r"0x[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "…", str(value))


async def leaf(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


async def numbers() -> AsyncIterator[int]:
    for number in range(3):
        await asyncio.sleep(0)
        yield number


async def fails() -> None:
    await asyncio.sleep(0)
    raise KeyError("as it should")


async def tasks() -> list[Any]:
    task = asyncio.create_task(leaf(0.5))
    named = asyncio.create_task(leaf(0.5), name="named")
    await asyncio.sleep(0)
    written = io.StringIO()
    task.print_stack(file=written)
    seen: list[Any] = [
        sorted(each.get_name() for each in asyncio.all_tasks()),
        plain(repr(task)),
        written.getvalue(),
        [frame.f_code.co_qualname for frame in task.get_stack()],
        [inspect.iscoroutine(task.get_coro()), inspect.isawaitable(task), inspect.getcoroutinestate(task.get_coro())],  # type: ignore[arg-type]
        sys.getrefcount(task),
        sys.getrefcount(task.get_coro()),
        len(gc.get_referrers(named)),
    ]
    seen.append(await asyncio.gather(task, named, fails(), asyncio.shield(leaf(0)), return_exceptions=True))
    return [*seen[:-1], plain(seen[-1])]


async def tracebacks() -> list[str]:
    lines: list[str] = []
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            group.create_task(leaf(60))
    except* KeyError as error:
        lines = "".join(traceback.format_exception(error)).splitlines()
    return lines


async def cancellations() -> list[Any]:
    task = asyncio.create_task(leaf(60))
    await asyncio.sleep(0)
    task.cancel("because")
    try:
        await task
    except asyncio.CancelledError as error:
        seen: list[Any] = [error.args, task.cancelled(), task.cancelling()]
    try:
        await asyncio.wait_for(leaf(60), 0.01)
    except TimeoutError:
        seen.append([task.get_name() for task in asyncio.all_tasks()])
    generator = numbers()
    seen.append([await anext(generator), inspect.isasyncgen(generator), generator.ag_running])  # type: ignore[attr-defined]
    await generator.aclose()  # type: ignore[attr-defined]
    return seen


async def contexts() -> list[Any]:
    """What a listing of all context variables shows, before, under and after spans."""

    def listing() -> list[list[str]]:
        return sorted([variable.name, plain(value)] for variable, value in contextvars.copy_context().items())

    async def inherits() -> list[Any]:
        return [listing(), plain(trace.get_current_span())]

    seen: list[Any] = [listing()]
    with tracer.start_as_current_span("outer") as span:
        token = context.attach(baggage.set_baggage("user", "7"))
        seen += [
            len(contextvars.copy_context()),
            trace.get_current_span() is span,
            sorted(map(plain, context.get_current())),
            plain(token),
            plain(token.old_value) == plain({trace.propagation._SPAN_KEY: span}),  # type: ignore[attr-defined]
            token.var.name,
            baggage.get_all(),
            len(await asyncio.create_task(inherits())),
            len(await asyncio.to_thread(contextvars.copy_context)),
        ]
        context.detach(token)
    return [*seen, listing(), contextvars.copy_context() == contextvars.copy_context()]


async def traced() -> list[Any]:
    """The events of a trace function, of a profile function, of monitoring, and of a debugger."""
    kept: list[Any] = []

    def trace_function(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename == __file__:
            kept.append([event, frame.f_code.co_qualname, frame.f_lineno - frame.f_code.co_firstlineno])
            return trace_function
        return None

    def profile_function(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename == __file__:
            kept.append([event, frame.f_code.co_qualname])

    def work() -> list[int]:
        return sorted((3, 1, 2), key=lambda number: -number)

    kept.append([sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()])
    sys.settrace(trace_function)
    await leaf(0)
    work()
    sys.settrace(None)
    sys.setprofile(profile_function)
    await leaf(0)
    work()
    sys.setprofile(None)
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        kept.append([monitoring.get_tool(tool) for tool in range(6)])
        monitoring.use_tool_id(monitoring.PROFILER_ID, "witness")
        monitoring.register_callback(
            monitoring.PROFILER_ID,
            monitoring.events.PY_START,
            lambda code, _: kept.append(code.co_qualname) if code.co_filename == __file__ else None,
        )
        monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.PY_START)
        work()
        monitoring.set_events(monitoring.PROFILER_ID, 0)
        monitoring.free_tool_id(monitoring.PROFILER_ID)
    debugger = Debugger(kept)
    debugger.runcall(work)
    return kept


class Debugger(bdb.Bdb):
    """Steps through everything."""

    def __init__(self, kept: list[Any]) -> None:
        super().__init__()
        self._kept = kept

    def user_line(self, frame: FrameType) -> None:
        if frame.f_code.co_filename == __file__:
            self._kept.append(["debugger", frame.f_code.co_qualname, frame.f_lineno - frame.f_code.co_firstlineno])
        self.set_step()


async def lifetimes() -> list[bool]:
    """Whether objects die at once when the last reference goes; nothing is collected."""

    class Own:
        pass

    async def holds(own: Own) -> None:
        with tracer.start_as_current_span("holds"):
            await asyncio.sleep(0.05)

    own = Own()
    task = asyncio.create_task(holds(own))
    await asyncio.sleep(0.02)
    span = weakref.ref(tracer.start_span("span"))
    references = [weakref.ref(own), weakref.ref(task), weakref.ref(task.get_coro()), span]
    await task
    del own, task
    await asyncio.sleep(0)
    return [reference() is None for reference in references]


async def chance() -> list[float]:
    """The random numbers of an application that has chosen its seed, over several exports."""
    random.seed(1)
    drawn = [random.random()]
    for _ in range(3):
        await asyncio.sleep(0.15)
        drawn.append(random.random())
    return drawn


def interpreter() -> list[Any]:
    return [
        gc.isenabled(),
        gc.get_threshold(),
        gc.get_debug(),
        len(gc.callbacks),
        gc.get_freeze_count(),
        sys.getswitchinterval(),
        sys.getrecursionlimit(),
        sys.get_coroutine_origin_tracking_depth(),
        [hook is None for hook in sys.get_asyncgen_hooks()],
        sys.excepthook is sys.__excepthook__,
        sys.unraisablehook is sys.__unraisablehook__,
        threading.excepthook is threading.__excepthook__,
        [type(finder).__name__ for finder in sys.meta_path],
        plain(pickle.loads(pickle.dumps([1, None]))),
        time.get_clock_info("monotonic").resolution,
    ]


async def main() -> None:
    asyncio.get_running_loop().slow_callback_duration = NEVER
    for scene in (tasks, tracebacks, cancellations, contexts, traced, lifetimes, chance):
        SEEN[scene.__name__] = await scene()


def warned() -> None:
    """What the interpreter says on the standard error when things are left undone."""
    leaf(0)  # never awaited
    loop = asyncio.new_event_loop()
    loop.slow_callback_duration = NEVER
    task = loop.create_task(fails())  # its exception is never retrieved
    loop.run_until_complete(asyncio.wait([task]))
    del task
    gc.collect()
    loop.close()


SEEN["interpreter"] = interpreter()
asyncio.run(main())
SEEN["interpreter afterwards"] = interpreter()
warned()
print(json.dumps(SEEN, default=str))
