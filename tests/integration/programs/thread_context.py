"""Stops in a span, in a task without one, in a thread, in a child and so on, until its input tells it to go on."""

import asyncio
import ctypes
import json
import mmap
import os
import sys
import threading

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import Profiler
from otel_asyncprof.export import InMemoryProfileExporter

trace.set_tracer_provider(TracerProvider())
tracer = trace.get_tracer("test")


def stop_here(place: str) -> None:
    """Tells where this thread is and which span is current there, and waits."""
    context = trace.get_current_span().get_span_context()
    span = (
        [f"{context.trace_id:032x}", f"{context.span_id:016x}", int(context.trace_flags)] if context.is_valid else None
    )
    print(
        json.dumps({"place": place, "pid": os.getpid(), "thread": threading.get_native_id(), "span": span}), flush=True
    )
    sys.stdin.readline()


async def with_span() -> None:
    with tracer.start_as_current_span("outer"):
        await asyncio.sleep(0)
        stop_here("in a span")
        with tracer.start_as_current_span("inner"):
            stop_here("in a span within")
        await asyncio.sleep(0)
        stop_here("in the span again")
    stop_here("after the span")


async def without_span() -> None:
    stop_here("in a task without a span")


async def main() -> None:
    await asyncio.gather(with_span(), without_span())


async def eager_child() -> None:
    with tracer.start_as_current_span("eager"):
        stop_here("in an eager step")
        await asyncio.sleep(0)
        stop_here("in the eager task's second step")


async def eager() -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    with tracer.start_as_current_span("parent"):
        child = asyncio.create_task(eager_child())
        stop_here("after an eager step")
        await child
        stop_here("after an eager task")


def in_a_thread() -> None:
    with tracer.start_as_current_span("thread"):
        stop_here("in a thread")


def in_a_child() -> None:
    with tracer.start_as_current_span("child"):
        stop_here("in a child")


if sys.argv[1:] == ["owned"]:  # by another component, which has published its own process context
    file = ctypes.CDLL(None).memfd_create(b"OTEL_CTX", 0)  # not every build has it in os
    os.ftruncate(file, 4096)
    theirs = mmap.mmap(file, 4096)
profiler = Profiler(exporter=InMemoryProfileExporter(), thread_context=True)
profiler.start()
with tracer.start_as_current_span("around"):
    asyncio.run(main())
    if hasattr(asyncio, "eager_task_factory"):
        asyncio.run(eager())
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
child = os.fork()
if child == 0:
    in_a_child()
    os._exit(0)
os.waitpid(child, 0)
with tracer.start_as_current_span("late"):
    profiler.shutdown()
    stop_here("when it has ended")
