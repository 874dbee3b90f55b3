"""How spans end, what cannot be read, and that views are contexts that leave nothing behind."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.trace.propagation import _SPAN_KEY
from span_helpers import (
    RECORDING,
    SAMPLED,
    Runtimes,
    child,
    provider,
    remote_span,
    span_id,
    tracer,
)

from otel_asyncprof import _native

pytest_plugins = "span_fixtures"

# Ended spans


def test_ended_span_is_marked_in_every_view(runtimes: Runtimes) -> None:
    """The views share one cell; a second mark finds nothing."""
    span = tracer.start_span("request")
    with runtimes.active(span):
        held = runtimes.ours.get_current()
        with runtimes.active(child(span)), runtimes.active(span):
            before = runtimes.ours.open_spans
            assert _native.span_ended(span.get_span_context().span_id)
            assert runtimes.ours.open_spans == before - 1
            for view in (_native.read_view(held), runtimes.view):
                assert view is not None
                assert view["cell"] == {"span_id": span_id(span), "ended": True, "name": "request"}
    assert not _native.span_ended(span.get_span_context().span_id)


def test_span_that_ended_before_it_is_attached_is_marked(runtimes: Runtimes) -> None:
    """Whether or not it was active before, and it opens no cell."""
    span = tracer.start_span("fire and forget")
    span.end()
    before = runtimes.ours.open_spans
    with runtimes.active(span) as view:
        assert view["cell"] == {"span_id": span_id(span), "ended": True, "name": "fire and forget"}
    assert runtimes.ours.open_spans == before
    active = tracer.start_span("activated, ended, attached again")
    with runtimes.active(active):
        held = runtimes.ours.get_current()
        active.end()
        with runtimes.active(active):
            fields = _native.read_view(held)
            assert fields is not None
            assert fields["cell"] is not None
            assert fields["cell"]["ended"]


def test_span_processor_is_noticed_before_the_span_can_end(runtimes: Runtimes) -> None:
    """Once for each provider in turn, not for each span."""
    other = TracerProvider()
    for maker in (tracer, tracer, other.get_tracer("other"), other.get_tracer("other")):
        with runtimes.active(maker.start_span("request")):
            pass
    assert runtimes.noticed == [provider._active_span_processor, other._active_span_processor]


def test_open_spans_are_bounded_and_the_oldest_is_given_up(runtimes: Runtimes) -> None:
    """A span that nobody ends must not hold memory for ever: it counts as ended."""
    bound = 1 << 16

    class Recording:
        """The least that a recording span is."""

        _end_time = None
        name = "open"

        def __init__(self, number: int) -> None:
            self._context = SpanContext(1, number, False, TraceFlags(1))

    with runtimes.active(Recording(1 << 40)):
        held = runtimes.ours.get_current()
        for number in range(bound):
            runtimes.ours.view(Context({_SPAN_KEY: Recording((1 << 41) + number)}))
        assert runtimes.ours.open_spans == bound
        fields = _native.read_view(held)
        assert fields is not None
        assert fields["cell"] is not None
        assert fields["cell"]["ended"]
    for number in range(bound):
        assert _native.span_ended((1 << 41) + number)
    assert runtimes.ours.open_spans == 0


def test_threads_may_open_and_end_spans_at_once(runtimes: Runtimes) -> None:
    """The table is left as it was found."""
    before = runtimes.ours.open_spans

    def work() -> None:
        for _ in range(300):
            span = tracer.start_span("threaded")
            with runtimes.active(span):
                assert runtimes.view["span_id"] == span_id(span)
            assert _native.span_ended(span.get_span_context().span_id)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runtimes.ours.open_spans == before


# Whatever goes wrong


class Raising:
    """A span of someone's own that fails at some point."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def get_span_context(self) -> Any:
        """Fails."""
        raise self.error


class OtherContext:
    """A SpanContext that is no tuple."""

    trace_id, span_id, is_remote, trace_flags, is_valid = 3, 4, False, TraceFlags(1), True


class OtherSpan:
    """A span that is none of OpenTelemetry's classes."""

    name = "other"

    def __init__(self) -> None:
        self.recording = True

    def get_span_context(self) -> OtherContext:
        """Gives properties only."""
        return OtherContext()

    def is_recording(self) -> bool:
        """Whether it has not ended."""
        return self.recording


@pytest.mark.parametrize("span", [Raising(RuntimeError("x")), Raising(MemoryError()), object(), 7, "span"])
def test_span_that_cannot_be_read_is_attached_without_a_view(runtimes: Runtimes, span: Any) -> None:
    """The application never sees our failure; it is counted."""
    context = Context({_SPAN_KEY: span})
    token = runtimes.ours.attach(context)
    assert runtimes.ours.get_current() is context
    assert runtimes.ours.failures == 1
    runtimes.ours.detach(token)


def test_interrupt_is_not_swallowed(runtimes: Runtimes) -> None:
    """What is no Exception belongs to the application."""
    with pytest.raises(KeyboardInterrupt):
        runtimes.ours.attach(Context({_SPAN_KEY: Raising(KeyboardInterrupt())}))
    assert runtimes.ours.get_current() == {}


@pytest.mark.parametrize(
    "span", [trace.INVALID_SPAN, None, remote_span(0, 5), remote_span(5, 0), remote_span(1 << 128, 5)]
)
def test_context_without_a_valid_span_is_attached_unchanged(runtimes: Runtimes, span: Any) -> None:
    """And that is no failure."""
    context = Context({_SPAN_KEY: span})
    runtimes.ours.attach(context)
    assert runtimes.ours.get_current() is context
    assert runtimes.ours.failures == 0


@pytest.mark.parametrize("context", [Context(), Context({"a": 1}), None, 7, {"a": 1}, type("Own", (Context,), {})()])
def test_other_values_are_attached_unchanged(runtimes: Runtimes, context: Any) -> None:
    """A plain dict, a subclass of the application's own: not ours to replace."""
    token = runtimes.ours.attach(context)
    assert runtimes.ours.get_current() is context
    runtimes.ours.detach(token)


def test_foreign_span_class_is_read_by_its_interface(runtimes: Runtimes) -> None:
    """get_span_context() and is_recording() are all that the API promises."""
    span = OtherSpan()
    with runtimes.active(span) as view:
        assert (view["trace_id"], view["span_id"]) == ((3).to_bytes(16, "big"), (4).to_bytes(8, "big"))
        assert (view["flags"], view["cell"]) == (
            SAMPLED | RECORDING,
            {"span_id": view["span_id"], "ended": False, "name": "other"},
        )
        span.recording = False
        with runtimes.active(span) as later:
            assert (later["flags"], later["cell_address"]) == (SAMPLED, view["cell_address"])
            assert later["cell"] is not None
            assert later["cell"]["ended"]


def test_a_second_type_of_contexts_is_refused() -> None:
    """The type of views is made once in a process, over OpenTelemetry's Context."""
    Runtimes()
    arguments: Any = (_SPAN_KEY, NonRecordingSpan, {}, asyncio._get_running_loop, print)
    with pytest.raises(RuntimeError, match="spans cannot be read"):
        _native.ContextVarsRuntimeContext(contextvars.ContextVar("x"), dict, *arguments)
    with pytest.raises(TypeError):
        _native.ContextVarsRuntimeContext("x", Context, *arguments)  # type: ignore[arg-type]


def test_a_variable_without_value_or_default_raises_as_it_does_by_itself() -> None:
    """LookupError names the variable."""
    variable: contextvars.ContextVar[Any] = contextvars.ContextVar("empty")
    runtime = _native.ContextVarsRuntimeContext(
        variable, Context, _SPAN_KEY, NonRecordingSpan, {}, asyncio._get_running_loop, print
    )
    with pytest.raises(LookupError) as ours:
        runtime.get_current()
    with pytest.raises(LookupError) as own:
        variable.get()
    assert ours.value.args == own.value.args


# A view is a context


def test_view_equals_its_context_and_is_as_immutable(runtimes: Runtimes) -> None:
    """The Context class decides; isinstance holds."""
    context = Context({_SPAN_KEY: tracer.start_span("request"), "a": 1})
    runtimes.ours.attach(context)
    view = runtimes.ours.get_current()
    assert view == context
    assert isinstance(view, Context)
    assert repr(view) == repr(context)
    assert list(view) == list(context)
    changes: list[Callable[[], Any]] = [
        lambda: view.__setitem__("b", 2),
        lambda: view.__delitem__("a"),
        lambda: view.update({}),
        lambda: view.pop("a"),
        lambda: view.popitem(),
        lambda: view.clear(),
        lambda: view.setdefault("a", 2),
        lambda: view.__ior__({}),
    ]
    for change in changes:
        with pytest.raises(ValueError, match=r"^$"):
            change()
    assert type(view.copy()) is dict
    assert type(runtimes.ours.view_type()) is Context
    with pytest.raises(TypeError, match="not safe"):
        dict.__new__(runtimes.ours.view_type)


def test_context_made_from_a_view_gets_a_view_with_the_same_cell(runtimes: Runtimes) -> None:
    """As set_value() does it for baggage: copy, change, Context()."""
    with runtimes.active(tracer.start_span("request")) as before:
        values = runtimes.ours.get_current().copy()
        values["baggage"] = "x"
        derived = Context(values)
        assert type(derived) is Context
        token = runtimes.ours.attach(derived)
        assert runtimes.ours.get_current() == derived
        assert runtimes.view == before
        runtimes.ours.detach(token)


# Memory


def test_views_cells_and_spans_are_freed(runtimes: Runtimes) -> None:
    """Nothing of an ended request is kept but the last few trace ids."""
    span = tracer.start_span("request")
    seen: list[weakref.ref[Any]] = [weakref.ref(span)]
    with runtimes.active(span):
        seen.append(weakref.ref(runtimes.ours.get_current()))
    _native.span_ended(span.get_span_context().span_id)
    del span
    assert [each() for each in seen] == [None, None]


def test_view_in_a_reference_cycle_is_collected(runtimes: Runtimes) -> None:
    """Through the dict it is, and through attributes that someone gave it."""
    holder: list[Any] = []
    view: Any = runtimes.ours.view(Context({_SPAN_KEY: tracer.start_span("request"), "holder": holder}))
    holder.append(view)
    view.attribute = view
    reference = weakref.ref(view)
    del view, holder
    gc.collect()
    assert reference() is None


def test_finalized_view_that_is_revived_carries_no_link(runtimes: Runtimes) -> None:
    """After the garbage collector has finalized it, its cells are gone: it is a plain context from then on."""
    revived: list[Any] = []

    class Reviver:
        view: Any

        def __del__(self) -> None:
            revived.append(self.view)

    reviver = Reviver()
    reviver.view = runtimes.ours.view(Context({_SPAN_KEY: tracer.start_span("request"), "reviver": reviver}))
    assert _native.read_view(reviver.view) is not None
    del reviver
    gc.collect()
    (view,) = revived
    assert _native.read_view(view) is None
    assert view == Context(view)


def test_100_000_activations_leave_nothing_behind(runtimes: Runtimes) -> None:
    """Neither objects the collector knows nor allocated blocks."""

    def activate(times: int) -> None:
        root = tracer.start_span("root")
        with runtimes.active(root):
            for number in range(times):
                span = NonRecordingSpan(root.get_span_context()) if number % 4 == 0 else root
                with runtimes.active(span):
                    pass
        _native.span_ended(root.get_span_context().span_id)

    activate(1000)
    gc.collect()
    objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
    activate(100_000)
    gc.collect()
    assert len(gc.get_objects()) - objects < 10
    assert sys.getallocatedblocks() - blocks < 100


def test_cells_of_100_000_ended_spans_leave_nothing_behind(runtimes: Runtimes) -> None:
    """Each with a name of its own, in traces of two spans, the second of which holds the cell of the first."""

    class Recording:
        _end_time = None

        def __init__(self, number: int) -> None:
            self._name = f"span {number}"
            self._context = SpanContext((1 << 100) + number // 2, (1 << 42) + number, False, TraceFlags(1))

    def activate(numbers: range) -> None:
        for number in numbers[::2]:
            with runtimes.active(Recording(number)), runtimes.active(Recording(number + 1)) as inner:
                assert inner["local_root"] == ((1 << 42) + number).to_bytes(8, "big")
            assert _native.span_ended((1 << 42) + number)
            assert _native.span_ended((1 << 42) + number + 1)

    activate(range(1000))
    gc.collect()
    blocks = sys.getallocatedblocks()
    activate(range(100_000))
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200
