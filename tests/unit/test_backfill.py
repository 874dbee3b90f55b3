"""Contexts that exist when our runtime context is put in place get their views."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
import weakref
from typing import Any

import opentelemetry.context as otel
import pytest
from opentelemetry import trace
from span_helpers import STOCK, current_span_id, tracer, view, view_span_id

from otel_asyncprof import _native, _runtime_context

pytest_plugins = "span_fixtures"
pytestmark = pytest.mark.usefixtures("context_of_its_own")


async def hold(span_name: str, started: asyncio.Event, go: asyncio.Event) -> tuple[int, int, int]:
    """Waits with a span attached; returns what the view said afterwards, and what is true."""
    with tracer.start_as_current_span(span_name):
        started.set()
        await go.wait()
        fields = view()
        return view_span_id(), current_span_id(), (fields["owner"] - id(asyncio.current_task()) if fields else -1)


def test_suspended_tasks_get_their_views_at_install() -> None:
    """Each with its own span and itself as the owner."""

    async def main() -> None:
        go = asyncio.Event()
        started = [asyncio.Event() for _ in range(20)]
        tasks = [asyncio.create_task(hold(f"span {number}", event, go)) for number, event in enumerate(started)]
        for event in started:
            await event.wait()
        _runtime_context.install()
        for task in tasks:
            context = _runtime_context.task_context(task)
            assert context is not None
            fields = _native.read_view(context[STOCK._current_context])
            assert fields is not None
            assert (fields["owner"], fields["spawner"]) == (id(task), 0)
        go.set()
        for seen, true, owner in await asyncio.gather(*tasks):
            assert (seen, owner) == (true, 0)
            assert true != 0

    asyncio.run(main())


def test_task_that_installs_gets_its_own_view() -> None:
    """Its context is entered, but by the caller."""

    async def main() -> None:
        with tracer.start_as_current_span("caller"):
            _runtime_context.install()
            fields = view()
            assert fields is not None
            assert fields["owner"] == id(asyncio.current_task())
            assert view_span_id() == current_span_id()
        assert view() is None

    asyncio.run(main())


def test_main_thread_outside_a_loop_gets_its_own_view() -> None:
    """Without an owner."""
    with tracer.start_as_current_span("script"):
        _runtime_context.install()
        fields = view()
        assert fields is not None
        assert fields["owner"] == 0
        assert view_span_id() == current_span_id()


def test_context_that_tasks_share_gets_no_owner() -> None:
    """One of them would otherwise be taken for the child of the other."""

    async def main() -> None:
        go, shared = asyncio.Event(), contextvars.copy_context()
        started = [asyncio.Event(), asyncio.Event()]
        first = asyncio.create_task(hold("shared", started[0], go), context=shared)
        await started[0].wait()

        async def only_wait() -> None:
            started[1].set()
            await go.wait()

        second = asyncio.create_task(only_wait(), context=shared)
        await started[1].wait()
        _runtime_context.install()
        fields = _native.read_view(shared[STOCK._current_context])
        assert fields is not None
        assert (fields["owner"], fields["spawner"]) == (0, 0)
        go.set()
        await asyncio.gather(first, second)

    asyncio.run(main())


def test_tasks_that_inherited_one_context_are_their_own_owners() -> None:
    """They hold the same OpenTelemetry context, and nothing says which of them activated the span."""

    async def main() -> None:
        go = asyncio.Event()
        with tracer.start_as_current_span("parent"):
            children = [asyncio.create_task(go.wait()) for _ in range(3)]
            await asyncio.sleep(0)
            _runtime_context.install()
        owners = []
        for task in children:
            context = _runtime_context.task_context(task)
            assert context is not None
            fields = _native.read_view(context[STOCK._current_context])
            assert fields is not None
            owners.append(fields["owner"])
        assert owners == [id(task) for task in children]
        go.set()
        await asyncio.gather(*children)

    asyncio.run(main())


class BusyThread:
    """A thread whose only task holds a span: it blocks in its step, then suspends, then ends."""

    def __init__(self) -> None:
        self.running, self.go_on, self.suspended, self.finish = (threading.Event() for _ in range(4))
        self.span: weakref.ref[Any] | None = None
        self.seen = self.true = 0
        self.thread = threading.Thread(target=lambda: asyncio.run(self.busy()))

    async def busy(self) -> None:
        """The task."""
        with tracer.start_as_current_span("busy") as span:
            self.span = weakref.ref(span)
            self.running.set()
            self.go_on.wait()
            finished = asyncio.get_running_loop().run_in_executor(None, self.finish.wait)
            asyncio.get_running_loop().call_soon(self.suspended.set)
            await finished
            self.seen, self.true = view_span_id(), current_span_id()

    def __enter__(self) -> BusyThread:
        self.thread.start()
        self.running.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self.go_on.set()
        self.finish.set()
        self.thread.join()


def test_running_task_of_another_thread_is_filled_in_later() -> None:
    """Its context is entered at install(): it is tried again, and then no more."""
    with BusyThread() as busy:
        _runtime_context.install()
        assert _runtime_context.retry_backfill() == 1
        busy.go_on.set()
        busy.suspended.wait()
        assert _runtime_context.retry_backfill() == 0
    assert busy.seen == busy.true != 0


def test_context_that_stays_entered_is_given_up() -> None:
    """After a stated number of tries."""
    with BusyThread():
        _runtime_context.install()
        left = [_runtime_context.retry_backfill() for _ in range(_runtime_context.MAX_RETRIES)]
    assert left == [1] * (_runtime_context.MAX_RETRIES - 1) + [0]


def test_pending_contexts_are_not_kept_alive() -> None:
    """A task that ends while it waits for a retry takes its context and span along."""
    with BusyThread() as busy:
        _runtime_context.install()
    gc.collect()
    assert busy.span is not None
    assert busy.span() is None
    assert _runtime_context.retry_backfill() == 0


def test_value_that_changed_meanwhile_is_not_overwritten() -> None:
    """Making the view ran code that changed the context."""
    _runtime_context.install()
    variable = STOCK._current_context
    context = contextvars.Context()

    class Changing:
        """A span whose reading attaches another context."""

        def get_span_context(self) -> Any:
            context.run(variable.set, otel.Context({"newer": 1}))
            return trace.SpanContext(1, 2, False)

        def is_recording(self) -> bool:
            return True

    context.run(variable.set, trace.set_span_in_context(Changing(), otel.Context()))  # type: ignore[arg-type]
    native: Any = otel._RUNTIME_CONTEXT
    assert native.backfill(context, None) is False
    assert context[variable] == {"newer": 1}


def test_entered_context_is_refused() -> None:
    """RuntimeError, as from Context.run()."""
    _runtime_context.install()
    variable = STOCK._current_context
    context = contextvars.Context()
    context.run(variable.set, trace.set_span_in_context(tracer.start_span("span"), otel.Context()))
    native: Any = otel._RUNTIME_CONTEXT
    with pytest.raises(RuntimeError):
        context.run(native.backfill, context, None)
    assert native.backfill(context, None) is True
    assert native.backfill(context, None) is False


class TaskOfItsOwn(asyncio.Task):  # type: ignore[type-arg]
    """A subclass, as libraries make them."""


@pytest.mark.parametrize("factory", [asyncio.Task, TaskOfItsOwn, asyncio.tasks._PyTask])  # type: ignore[attr-defined]
def test_context_of_a_task_is_the_one_it_was_given(factory: Any) -> None:
    """Though the context of its done callback is another, and was added first."""

    async def main() -> None:
        given = contextvars.Context()
        task = factory(asyncio.sleep(0), loop=asyncio.get_running_loop(), context=given)
        task.add_done_callback(lambda _: None, context=contextvars.Context())
        assert _runtime_context.task_context(task) is given
        await task

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in 3.12")
def test_eager_task_in_its_first_step_is_found() -> None:
    """It is in a set of its own until it suspends."""

    async def child() -> None:
        _runtime_context.install()
        assert asyncio.current_task() in _runtime_context.live_tasks()
        fields = view()
        assert fields is not None
        assert fields["owner"] == id(asyncio.current_task())

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        with tracer.start_as_current_span("parent"):
            await asyncio.create_task(child())

    asyncio.run(main())
