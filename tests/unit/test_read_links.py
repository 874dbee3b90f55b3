"""The span in a context: found among any number of other variables, wherever their hashes put it."""

from __future__ import annotations

import contextvars
from typing import Any

import opentelemetry.context as otel
import pytest
from opentelemetry.context.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.trace.propagation import _SPAN_KEY
from reader_helpers import event_loop, prepare, settle

from otel_asyncprof import _native

Link = tuple[bytes, bytes]
WORD = 1 << 64
LEVEL_BITS = 5
ATTEMPTS = 2000


class Spans:
    """Puts spans into contexts as the running profiler does, under OpenTelemetry's own variable."""

    def __init__(self) -> None:
        self.variable: contextvars.ContextVar[Any] = otel._RUNTIME_CONTEXT._current_context  # type: ignore[attr-defined]
        self.runtime = _native.ContextVarsRuntimeContext(
            self.variable, Context, _SPAN_KEY, NonRecordingSpan, {}, lambda: None, lambda _: None
        )

    def view(self, number: int) -> tuple[Any, Link]:
        """A context of OpenTelemetry's with a span, and the link that is to be read."""
        ids = (number << 64 | 0xFEDC_0001, number << 32 | 0xABCD)
        span = NonRecordingSpan(SpanContext(*ids, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)))
        return self.runtime.view(Context({_SPAN_KEY: span})), (ids[0].to_bytes(16, "big"), ids[1].to_bytes(8, "big"))


@pytest.fixture
def spans() -> Spans:
    """The type of views exists before the readers learn of it."""
    made = Spans()
    prepare()
    return made


def put(context: contextvars.Context, variable: contextvars.ContextVar[Any], value: object) -> None:
    """Sets a variable in a context that is not current."""
    context.run(variable.set, value)


def read(context: contextvars.Context) -> Link | None:
    """What the reader finds."""
    return _native.read_link(id(context))


class Hashed(str):
    """A name that makes the hash of the variable what it should be, if the variable gets the expected address."""

    wanted = 0

    def __hash__(self) -> int:
        address = self.wanted_address
        rotated = (address >> 4 | address << 60) % WORD
        value = (self.wanted ^ rotated) % WORD
        return value - WORD if value >= WORD // 2 else value

    wanted_address = 0


def variable_with_hash(wanted: int) -> contextvars.ContextVar[Any]:
    """A variable of a chosen hash: the allocator gives it the place that the last one left."""
    name = Hashed("collides")
    name.wanted = wanted % WORD
    held: list[object] = []
    for _ in range(ATTEMPTS):
        probe: contextvars.ContextVar[Any] = contextvars.ContextVar("probe")
        name.wanted_address = id(probe)
        del probe
        made: contextvars.ContextVar[Any] = contextvars.ContextVar(name)
        if hash(made) % WORD == wanted % WORD:
            return made
        held.append(made)
    raise AssertionError("no variable got the wanted hash")


def folded(variable: contextvars.ContextVar[Any]) -> int:
    """The 32 bits by which CPython's hash tries are ordered."""
    return (hash(variable) ^ hash(variable) % WORD >> 32) % (1 << 32)


@pytest.mark.parametrize("others", [0, 1, 2, 5, 15, 16, 17, 31, 32, 33, 100, 500, 2000])
def test_the_link_is_found_among_other_variables(spans: Spans, others: int) -> None:
    """In every shape of the trie, with the span put in first, last, and twice."""
    view, link = spans.view(others + 1)
    newer_view, newer_link = spans.view(others + 2)
    variables: list[contextvars.ContextVar[int]] = [contextvars.ContextVar(f"other {i}") for i in range(others)]
    first, last = contextvars.Context(), contextvars.Context()
    put(first, spans.variable, view)
    for number, variable in enumerate(variables):
        assert read(last) is None
        put(first, variable, number)
        put(last, variable, number)
        assert read(first) == link
    assert read(last) is None
    put(last, spans.variable, view)
    assert (read(first), read(last)) == (link, link)
    put(first, spans.variable, newer_view)
    assert (read(first), read(last)) == (newer_link, link)


def test_a_link_is_found_in_hundreds_of_tries(spans: Spans) -> None:
    """Their variables hash differently each time."""
    for number in range(1, 300):
        context = contextvars.Context()
        for i in range(number % 41):
            put(context, contextvars.ContextVar(f"{number} {i}"), None)
        view, link = spans.view(number)
        assert read(context) is None
        put(context, spans.variable, view)
        assert read(context) == link


def test_reset_variables_are_gone(spans: Spans) -> None:
    """By their token, as detach() does it."""
    view, link = spans.view(1)
    context = contextvars.Context()
    token = context.run(spans.variable.set, view)
    assert read(context) == link
    context.run(spans.variable.reset, token)
    assert read(context) is None


@pytest.mark.parametrize("others", [0, 40])
def test_a_context_without_the_span_is_read_as_none_however_alike(spans: Spans, others: int) -> None:
    """Another variable with the view, a plain context, other values."""
    view, _ = spans.view(1)
    context = contextvars.Context()
    for i in range(others):
        put(context, contextvars.ContextVar(f"other {i}"), view)
    put(context, contextvars.ContextVar("current_context"), view)
    assert read(context) is None
    for value in (None, 1, "view", Context(), {}, object()):
        put(context, spans.variable, value)
        assert read(context) is None


@pytest.mark.parametrize("levels", range(1, 7))
def test_variables_whose_hashes_begin_alike_push_the_link_down_the_trie(spans: Spans, levels: int) -> None:
    """Down to the seventh and last level."""
    view, link = spans.view(levels)
    alike = folded(spans.variable) ^ 1 << LEVEL_BITS * levels
    other = variable_with_hash(alike)  # its upper half is zero and changes nothing
    assert folded(other) == alike
    context, without = contextvars.Context(), contextvars.Context()
    for made in (context, without):
        put(made, other, "other")
    put(context, spans.variable, view)
    assert (read(context), read(without)) == (link, None)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_variables_of_the_very_same_hash_do_not_hide_the_link(spans: Spans, count: int) -> None:
    """They hang in one node and are told apart by identity."""
    view, link = spans.view(count)
    colliding = [variable_with_hash(hash(spans.variable)) for _ in range(count)]
    for position in range(count + 1):
        context, without = contextvars.Context(), contextvars.Context()
        for number, variable in enumerate(colliding):
            if number == position:
                put(context, spans.variable, view)
            put(context, variable, number)
            put(without, variable, number)
        if position == count:
            put(context, spans.variable, view)
        assert (read(context), read(without)) == (link, None)
        for i in range(100):  # the same node below an array node
            put(context, contextvars.ContextVar(f"other {i}"), i)
        assert read(context) == link


def test_a_copied_context_has_the_link_until_it_gets_its_own(spans: Spans) -> None:
    """Copies share the trie and part when one is changed."""
    view, link = spans.view(1)
    child_view, child_link = spans.view(2)
    parent = contextvars.Context()
    put(parent, spans.variable, view)
    child = parent.copy()
    grandchild = child.run(contextvars.copy_context)
    assert [read(context) for context in (parent, child, grandchild)] == [link, link, link]
    put(child, spans.variable, child_view)
    assert [read(context) for context in (parent, child, grandchild)] == [link, child_link, link]
    put(grandchild, contextvars.ContextVar("other"), 1)
    assert read(grandchild) == link


def test_a_task_inherits_the_link_and_keeps_it(spans: Spans) -> None:
    """Through create_task(), as the sampler sees it: by the context of the task."""
    view, link = spans.view(1)
    other_view, other_link = spans.view(2)

    async def child(own: Any) -> None:
        if own:
            spans.variable.set(own)
        await loop.create_future()

    def make() -> list[Any]:
        spans.variable.set(view)
        tasks = [loop.create_task(child(None)), loop.create_task(child(other_view))]
        spans.variable.set(None)
        return tasks

    with event_loop() as loop:
        tasks = contextvars.Context().run(make)
        settle(loop)
        contexts = [_native.read_task(id(task))["context"] for task in tasks]
        assert [_native.read_link(context) for context in contexts] == [link, other_link]


def test_an_address_without_a_context_has_no_link(spans: Spans) -> None:
    """Nothing is read, nothing is raised."""
    assert [_native.read_link(address) for address in (0, 8, 1 << 47, id(spans), id(type))] == [None] * 5
