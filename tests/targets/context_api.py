"""Spans made current in other ways: attach, use_span, a context given to a task, to a callback and to a thread."""

import asyncio
import contextvars
import threading

from opentelemetry import baggage, context, trace
from targets.support import burn, expect_span, phase, tracer


async def by_attach() -> None:
    span = tracer().start_span("attached")
    token = context.attach(baggage.set_baggage("key", "value", trace.set_span_in_context(span)))
    expect_span("by_attach")
    await asyncio.sleep(0.3)
    context.detach(token)
    span.end()


async def by_use_span() -> None:
    with trace.use_span(tracer().start_span("used"), end_on_exit=True):
        expect_span("by_use_span")
        token = context.attach(baggage.set_baggage("key", "value"))
        await asyncio.sleep(0.3)
        context.detach(token)


async def by_given_context() -> None:
    await asyncio.sleep(0.3)


def in_callback() -> None:
    burn(0.1)


def in_thread() -> None:
    with tracer().start_as_current_span("thread"):
        expect_span("in_thread")
        burn(0.1)


async def main() -> None:
    loop = asyncio.get_running_loop()
    with phase(), tracer().start_as_current_span("given"):
        expect_span("by_given_context")
        expect_span("in_callback")
        given = contextvars.copy_context()
        held = trace.get_current_span()
        tasks = [loop.create_task(by_given_context(), context=given)]
        loop.call_soon(in_callback, context=given)
        tasks += [loop.create_task(by_attach()), loop.create_task(by_use_span())]
        thread = threading.Thread(target=in_thread, name="worker")
        thread.start()
        await asyncio.wait(tasks)
        thread.join()
        assert held.is_recording()
