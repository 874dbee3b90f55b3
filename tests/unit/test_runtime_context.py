"""Putting span views in place of OpenTelemetry's contexts, giving them to contexts that exist, and taking the place back."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import opentelemetry.context as otel
import pytest
from opentelemetry import baggage, trace
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import _native, _runtime_context

tracer = TracerProvider().get_tracer("test")

STOCK = otel._RUNTIME_CONTEXT


@pytest.fixture(autouse=True)
def in_a_context_of_its_own() -> Iterator[None]:
    """Each test begins with an empty current context and leaves the stock runtime context behind."""
    token = otel.attach(otel.Context())
    yield
    _runtime_context.uninstall()
    assert otel._RUNTIME_CONTEXT is STOCK
    otel.detach(token)


@pytest.fixture(params=["stock", "ours"])
def either(request: pytest.FixtureRequest) -> None:
    """The same test with OpenTelemetry's runtime context and with ours."""
    if request.param == "ours":
        assert _runtime_context.install()


def view() -> _native.ViewFields | None:
    """The fields of the current view."""
    return _native.read_view(otel.get_current())


def current_span_id() -> int:
    """What OpenTelemetry itself says."""
    return trace.get_current_span().get_span_context().span_id


def view_span_id() -> int:
    """What the sampler would read; 0 for no view."""
    fields = view()
    return int.from_bytes(fields["span_id"], "big") if fields else 0


@pytest.fixture
def errors() -> Iterator[list[tuple[str, str]]]:
    """What OpenTelemetry and we log: message and kind of exception. The record itself would keep its frames alive."""
    seen: list[tuple[str, str]] = []

    def keep(record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        seen.append((record.getMessage(), kind.__name__ if kind else ""))
        return False

    loggers = [logging.getLogger(name) for name in ("opentelemetry.context", "otel_asyncprof._runtime_context")]
    for logger in loggers:
        logger.addFilter(keep)
    yield seen
    for logger in loggers:
        logger.removeFilter(keep)


# The same scenarios under both


@pytest.mark.usefixtures("either")
def test_nested_contexts_are_put_back_in_order() -> None:
    """Equality, not identity, is what a context promises."""
    first, second = otel.set_value("a", 1), trace.set_span_in_context(tracer.start_span("span"))
    outer = otel.attach(first)
    inner = otel.attach(second)
    assert otel.get_current() == second
    otel.detach(inner)
    assert otel.get_current() == first
    otel.detach(outer)
    assert otel.get_current() == {}


@pytest.mark.usefixtures("either")
def test_contexts_detached_out_of_order_follow_their_tokens(errors: list[tuple[str, str]]) -> None:
    """The variable holds what the token remembers; a used token raises what it always did."""
    first, second = (trace.set_span_in_context(tracer.start_span(name)) for name in ("first", "second"))
    outer, inner = otel.attach(first), otel.attach(second)
    otel.detach(outer)
    assert otel.get_current() == {}
    otel.detach(inner)
    assert otel.get_current() == first
    assert errors == []
    otel.detach(inner)
    assert errors == [("Failed to detach context", "RuntimeError")]
    assert otel.get_current() == first


@pytest.mark.usefixtures("either")
def test_token_that_is_none_is_logged_by_opentelemetry(errors: list[tuple[str, str]]) -> None:
    """TypeError, as from ContextVar.reset()."""
    otel.detach("no token")  # type: ignore[arg-type]
    assert errors == [("Failed to detach context", "TypeError")]


@pytest.mark.usefixtures("either")
def test_token_of_another_variable_is_refused(errors: list[tuple[str, str]]) -> None:
    """ValueError, as from ContextVar.reset()."""
    otel.detach(contextvars.ContextVar[Any]("other").set(1))
    assert errors == [("Failed to detach context", "ValueError")]


@pytest.mark.usefixtures("either")
def test_baggage_on_a_span_keeps_both() -> None:
    """set_value() copies the current context."""
    span = tracer.start_span("span")
    with trace.use_span(span):
        token = otel.attach(baggage.set_baggage("user", "7"))
        assert (baggage.get_all(), trace.get_current_span()) == ({"user": "7"}, span)
        otel.detach(token)
        assert (baggage.get_all(), trace.get_current_span()) == ({}, span)


@pytest.mark.usefixtures("either")
def test_exception_passes_through_a_span() -> None:
    """And the context is put back."""
    with pytest.raises(ZeroDivisionError), tracer.start_as_current_span("span"):
        raise ZeroDivisionError
    assert otel.get_current() == {}


@pytest.mark.usefixtures("either")
def test_tasks_threads_and_copied_contexts_see_their_own_span() -> None:
    """create_task and to_thread copy, run_in_executor and a new thread do not."""

    async def main() -> list[int]:
        with tracer.start_as_current_span("outer") as outer:
            seen = [await asyncio.create_task(in_task()), await asyncio.to_thread(current_span_id)]
            seen += [contextvars.copy_context().run(current_span_id)]
            empty = await asyncio.get_running_loop().run_in_executor(None, current_span_id)
            assert seen == [outer.get_span_context().span_id] * 3
            return [empty]

    async def in_task() -> int:
        return current_span_id()

    assert asyncio.run(main()) == [0]


async def spans() -> AsyncIterator[int]:
    """A generator that holds a span over its yields."""
    with tracer.start_as_current_span("generator"):
        yield 1
        yield 2


async def leave_open(close: Callable[[Any], Any]) -> weakref.ref[Any]:
    """Breaks out of the generator and has another context close it."""
    generator = spans()
    async for _ in generator:
        break
    span = weakref.ref(trace.get_current_span())
    await close(generator)
    return span


@pytest.mark.parametrize("way", ["aclose in a task", "collected"])
@pytest.mark.usefixtures("either")
def test_generator_closed_in_another_context_is_reported_as_ever(way: str, errors: list[tuple[str, str]]) -> None:
    """One error by OpenTelemetry, none by us; afterwards nothing is kept."""

    async def in_a_task(generator: Any) -> None:
        await asyncio.create_task(generator.aclose(), context=contextvars.Context())

    async def collected(generator: Any) -> None:
        await asyncio.sleep(0)

    async def main() -> weakref.ref[Any]:
        reference = await asyncio.create_task(leave_open(in_a_task if way == "aclose in a task" else collected))
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0)
        assert otel.get_current() == {} and view() is None
        return reference

    reference = asyncio.run(main())
    assert errors == [("Failed to detach context", "ValueError")]
    gc.collect()
    assert reference() is None


# Views are right


def test_view_follows_opentelemetry_everywhere() -> None:
    """Whatever get_current_span() says, the view says."""
    _runtime_context.install()

    async def check() -> None:
        for _ in range(3):
            assert view_span_id() == current_span_id() != 0
            await asyncio.sleep(0)

    async def request() -> None:
        with tracer.start_as_current_span("request"):
            await asyncio.gather(check(), check())
            with tracer.start_as_current_span("query"):
                await check()
                token = otel.attach(baggage.set_baggage("a", "b"))
                await check()
                otel.detach(token)
            await check()
            assert await asyncio.to_thread(lambda: view_span_id() == current_span_id() != 0)
        assert (view_span_id(), current_span_id()) == (0, 0)

    async def main() -> None:
        await asyncio.gather(*(request() for _ in range(50)))

    asyncio.run(main())


# In place and out again


@contextmanager
def replaced(runtime: Any) -> Iterator[Any]:
    """Somebody else's runtime context in place, and the stock one afterwards."""
    otel._RUNTIME_CONTEXT = runtime
    try:
        yield runtime
    finally:
        otel._RUNTIME_CONTEXT = STOCK


def test_uninstall_restores_the_very_object() -> None:
    """Installing twice is installing once."""
    assert _runtime_context.install() and _runtime_context.install()
    assert type(otel._RUNTIME_CONTEXT) is _native.ContextVarsRuntimeContext
    assert otel._RUNTIME_CONTEXT._current_context is STOCK._current_context  # type: ignore[attr-defined]
    _runtime_context.uninstall()
    assert otel._RUNTIME_CONTEXT is STOCK
    _runtime_context.uninstall()
    assert otel._RUNTIME_CONTEXT is STOCK


def test_uninstall_leaves_a_later_replacement_alone() -> None:
    """What somebody else has put there since is not ours to remove."""
    _runtime_context.install()
    with replaced(ContextVarsRuntimeContext()) as other:
        _runtime_context.uninstall()
        assert otel._RUNTIME_CONTEXT is other


def test_runtime_context_of_the_application_is_left_alone(errors: list[tuple[str, str]]) -> None:
    """One line says that there will be no links."""

    class OwnRuntimeContext(ContextVarsRuntimeContext):
        """May do anything in attach()."""

    with replaced(OwnRuntimeContext()) as own:
        assert not _runtime_context.install()
        assert otel._RUNTIME_CONTEXT is own
    name = f"{__name__}.{OwnRuntimeContext.__qualname__}"
    assert errors == [(f"samples will not be linked to spans: OpenTelemetry's contexts are kept by {name}", "")]


def test_tokens_work_across_install_and_uninstall(errors: list[tuple[str, str]]) -> None:
    """The variable is the same, so tokens from before and from between stay good."""
    before = otel.attach(trace.set_span_in_context(tracer.start_span("before")))
    _runtime_context.install()
    between = otel.attach(trace.set_span_in_context(tracer.start_span("between")))
    _runtime_context.uninstall()
    otel.detach(between)
    assert trace.get_current_span().name == "before"  # type: ignore[attr-defined]
    otel.detach(before)
    assert otel.get_current() == {}
    assert errors == []


def test_context_that_an_old_token_brings_back_gets_its_view() -> None:
    """A request under way at the start is linked again as soon as its inner span ends."""
    outer = otel.attach(trace.set_span_in_context(tracer.start_span("outer")))
    inner = otel.attach(trace.set_span_in_context(tracer.start_span("inner")))
    _runtime_context.install()
    assert view_span_id() == current_span_id()
    otel.detach(inner)
    assert trace.get_current_span().name == "outer"  # type: ignore[attr-defined]
    assert view_span_id() == current_span_id()
    otel.detach(outer)
    assert (otel.get_current(), view()) == ({}, None)


def test_cell_survives_a_restart_and_its_end_reaches_old_views() -> None:
    """Contexts keep their views between two starts; the span may end in the second."""
    span = tracer.start_span("request")
    _runtime_context.install()
    token = otel.attach(trace.set_span_in_context(span))
    old = otel.get_current()
    _runtime_context.uninstall()
    _runtime_context.install()
    with trace.use_span(span):
        first, second = _native.read_view(old), view()
        assert first is not None and second is not None and first["cell_address"] == second["cell_address"]
    span.end()
    ended = _native.read_view(old)
    assert ended is not None and ended["cell"] is not None and ended["cell"]["ended"]
    otel.detach(token)


# Backfill


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
            fields = _native.read_view(context[STOCK._current_context])  # type: ignore[attr-defined]
            assert fields is not None and (fields["owner"], fields["spawner"]) == (id(task), 0)
        go.set()
        for seen, true, owner in await asyncio.gather(*tasks):
            assert (seen, owner) == (true, 0) and true != 0

    asyncio.run(main())


def test_task_that_installs_gets_its_own_view() -> None:
    """Its context is entered, but by the caller."""

    async def main() -> None:
        with tracer.start_as_current_span("caller"):
            _runtime_context.install()
            fields = view()
            assert fields is not None and fields["owner"] == id(asyncio.current_task())
            assert view_span_id() == current_span_id()
        assert view() is None

    asyncio.run(main())


def test_main_thread_outside_a_loop_gets_its_own_view() -> None:
    """Without an owner."""
    with tracer.start_as_current_span("script"):
        _runtime_context.install()
        fields = view()
        assert fields is not None and fields["owner"] == 0
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
        fields = _native.read_view(shared[STOCK._current_context])  # type: ignore[attr-defined]
        assert fields is not None and (fields["owner"], fields["spawner"]) == (0, 0)
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
            fields = _native.read_view(context[STOCK._current_context])  # type: ignore[attr-defined]
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
    assert busy.span is not None and busy.span() is None
    assert _runtime_context.retry_backfill() == 0


def test_value_that_changed_meanwhile_is_not_overwritten() -> None:
    """Making the view ran code that changed the context."""
    _runtime_context.install()
    variable = STOCK._current_context  # type: ignore[attr-defined]
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
    variable = STOCK._current_context  # type: ignore[attr-defined]
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
        assert fields is not None and fields["owner"] == id(asyncio.current_task())

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        with tracer.start_as_current_span("parent"):
            await asyncio.create_task(child())

    asyncio.run(main())
