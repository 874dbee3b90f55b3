"""Our runtime context in place of OpenTelemetry's: in, the same behaviour, and out again."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import gc
import logging
import pickle
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import opentelemetry.context as otel
import pytest
from opentelemetry import baggage, trace
from opentelemetry.context.context import Context
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.trace.propagation import _SPAN_KEY
from span_helpers import STOCK, current_span_id, remote_span, span_id, tracer, view, view_span_id

from otel_asyncprof import _native, _runtime_context

pytest_plugins = "span_fixtures"
pytestmark = pytest.mark.usefixtures("context_of_its_own")


@pytest.fixture(params=["stock", "ours"])
def either(request: pytest.FixtureRequest) -> None:
    """The same test with OpenTelemetry's runtime context and with ours."""
    if request.param == "ours":
        assert _runtime_context.install()


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
        assert otel.get_current() == {}
        assert view() is None
        return reference

    reference = asyncio.run(main())
    assert errors == [("Failed to detach context", "ValueError")]
    gc.collect()
    assert reference() is None


@pytest.mark.usefixtures("either")
def test_current_context_is_copied_and_pickled_as_ever() -> None:
    """Its type and class make plain contexts; what needs to write into one fails where it always did."""
    given = otel.set_value("a", 1, trace.set_span_in_context(remote_span(), Context()))
    token = otel.attach(given)
    current = otel.get_current()
    assert current == given
    assert (current.__class__, type(type(current)(current)), type(current.copy())) == (Context, Context, dict)
    assert type(current)(current) == current
    assert {name: span_id(each[_SPAN_KEY]) for name, each in pickled(current).items()} == {
        0: span_id(remote_span()),
        1: span_id(remote_span()),
    }
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(current, protocol)
        with pytest.raises(ValueError, match=r"^$"):
            pickle.loads(data)
    for copied in (copy.copy, copy.deepcopy, type(current).fromkeys):
        with pytest.raises(ValueError, match=r"^$"):
            copied(current)
    otel.detach(token)


def pickled(context: otel.Context) -> dict[int, Any]:
    """What comes back by the protocols that know how to bring a context back."""
    return {protocol: pickle.loads(pickle.dumps(context, protocol)) for protocol in (0, 1)}


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    "write",
    [
        lambda context: context.__setitem__("a", 1),
        lambda context: context.__delitem__(_SPAN_KEY),
        lambda context: context.setdefault("a", 1),
        lambda context: context.pop(_SPAN_KEY),
        lambda context: context.popitem(),
        lambda context: context.clear(),
        lambda context: context.update({}),
        lambda context: context.__ior__({}),
    ],
)
def test_current_context_cannot_be_written(write: Callable[[Any], object]) -> None:
    """A context with a span is as constant as any other."""
    with trace.use_span(tracer.start_span("span")), pytest.raises(ValueError, match=r"^$"):
        write(otel.get_current())


@pytest.mark.usefixtures("either")
def test_spans_add_no_context_variable() -> None:
    """A listing shows OpenTelemetry's own variable, with a context, and no longer than a span is current."""
    before = contextvars.copy_context()
    with trace.use_span(tracer.start_span("span")) as span:
        variable = STOCK._current_context
        assert set(contextvars.copy_context()) == {*before, variable}
        assert contextvars.copy_context()[variable] == {_SPAN_KEY: span}
        assert isinstance(contextvars.copy_context()[variable], Context)
    assert contextvars.copy_context() == before
    assert isinstance(otel._RUNTIME_CONTEXT, ContextVarsRuntimeContext)


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
    assert _runtime_context.install()
    assert _runtime_context.install()
    ours: Any = otel._RUNTIME_CONTEXT
    assert type(ours) is _native.ContextVarsRuntimeContext
    assert ours._current_context is STOCK._current_context
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
        assert first is not None
        assert second is not None
        assert first["cell_address"] == second["cell_address"]
    span.end()
    ended = _native.read_view(old)
    assert ended is not None
    assert ended["cell"] is not None
    assert ended["cell"]["ended"]
    otel.detach(token)
