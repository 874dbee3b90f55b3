"""What a span view holds, and that a runtime context with views behaves as OpenTelemetry's own does."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context.context import Context
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.trace.propagation import _SPAN_KEY

from otel_asyncprof import _native

SAMPLED, REMOTE, RECORDING = 1, 2, 4
NO_ID = bytes(8)

provider = TracerProvider()
tracer = provider.get_tracer("test")


class Runtimes:
    """A stock runtime context and ours over the same variable."""

    def __init__(self) -> None:
        self.stock = ContextVarsRuntimeContext()
        self.noticed: list[Any] = []
        self.ours = _native.ContextVarsRuntimeContext(
            self.stock._current_context,
            Context,
            _SPAN_KEY,
            NonRecordingSpan,
            asyncio.tasks._current_tasks,  # type: ignore[attr-defined]
            asyncio._get_running_loop,
            self.noticed.append,
        )

    @property
    def view(self) -> _native.ViewFields:
        """The fields of the view that is current."""
        fields = _native.read_view(self.ours.get_current())
        assert fields is not None
        return fields

    @contextmanager
    def active(self, span: Any) -> Iterator[_native.ViewFields]:
        """Attaches a context with the span and gives the view's fields."""
        token = self.ours.attach(Context({_SPAN_KEY: span}))
        try:
            yield self.view
        finally:
            self.ours.detach(token)


@pytest.fixture
def runtimes() -> Runtimes:
    """A variable of its own for each test."""
    return Runtimes()


def span_id(span: Any) -> bytes:
    """The span id as OTLP writes it."""
    return int(span.get_span_context().span_id).to_bytes(8, "big")


def trace_id(span: Any) -> bytes:
    """The trace id as OTLP writes it."""
    return int(span.get_span_context().trace_id).to_bytes(16, "big")


def child(of: Any, name: str = "child") -> Any:
    """A span below another."""
    return tracer.start_span(name, context=trace.set_span_in_context(of, Context()))


def remote_span(trace_number: int = 5, span_number: int = 6, flags: int = 1, remote: bool = True) -> NonRecordingSpan:
    """What a propagator makes of an incoming header."""
    return NonRecordingSpan(SpanContext(trace_number, span_number, remote, TraceFlags(flags)))


# What a view holds


def test_view_holds_the_ids_of_the_span(runtimes: Runtimes) -> None:
    """Both ids are big-endian bytes, and a first span is its own local root."""
    span = tracer.start_span("request")
    with runtimes.active(span) as view:
        address = view["cell_address"]
        assert address != 0
        assert view == {
            "trace_id": trace_id(span),
            "span_id": span_id(span),
            "local_root": span_id(span),
            "flags": SAMPLED | RECORDING,
            "owner": 0,
            "spawner": 0,
            "cell_address": address,
            "spawner_cell": 0,
            "root_cell": address,
            "cell": {"span_id": span_id(span), "ended": False, "name": "request"},
        }


@pytest.mark.parametrize("number", [1, 1 << 63, (1 << 64) - 1, 1 << 64, (1 << 127) + 7, (1 << 128) - 1])
def test_ids_of_every_width_are_exact(runtimes: Runtimes, number: int) -> None:
    """Ids are read by digits, so every width is tried, twice for what is remembered."""
    span = remote_span(number, min(number, (1 << 64) - 1))
    for _ in range(2):
        with runtimes.active(span) as view:
            assert (view["trace_id"], view["span_id"]) == (trace_id(span), span_id(span))


def test_flags_say_what_kind_of_span_it_is(runtimes: Runtimes) -> None:
    """Sampled, remote and recording are three different things."""
    unsampled = TracerProvider(sampler=ALWAYS_OFF).get_tracer("test").start_span("unsampled")
    ended = tracer.start_span("ended")
    ended.end()
    spans = [tracer.start_span("recording"), unsampled, remote_span(), remote_span(flags=0), remote_span(remote=False), ended]
    flags = []
    for span in spans:
        with runtimes.active(span) as view:
            flags.append(view["flags"])
    assert flags == [SAMPLED | RECORDING, 0, SAMPLED | REMOTE, REMOTE, SAMPLED, SAMPLED]


def test_only_a_span_that_has_recorded_has_a_cell(runtimes: Runtimes) -> None:
    """What never records never ends either."""
    unsampled = TracerProvider(sampler=ALWAYS_OFF).get_tracer("test").start_span("unsampled")
    for span in (unsampled, remote_span(), remote_span(remote=False)):
        with runtimes.active(span) as view:
            assert (view["cell"], view["cell_address"]) == (None, 0)


def test_name_is_the_one_at_the_first_activation(runtimes: Runtimes) -> None:
    """A name given later does not change what the sampler may be reading."""
    span = tracer.start_span("GET /größe/\U0001f40d")
    with runtimes.active(span):
        span.update_name("later")
        with runtimes.active(span) as view:
            assert view["cell"] == {"span_id": span_id(span), "ended": False, "name": "GET /größe/\U0001f40d"}


def test_memory_of_a_view_is_where_the_sampler_expects_it(runtimes: Runtimes) -> None:
    """The inline part begins where the base ends, and is nothing but twelve words and three references."""
    assert runtimes.ours.view_type.__basicsize__ == Context.__basicsize__ + 12 * 8 + 3 * 8
    assert runtimes.ours.view_type.__base__ is Context


# Local root


def test_local_root_is_inherited_within_a_trace(runtimes: Runtimes) -> None:
    """However deep, the first span of the trace stays the root."""
    root = tracer.start_span("root")
    middle = child(root)
    leaf = child(middle)
    with runtimes.active(root) as root_view, runtimes.active(middle), runtimes.active(leaf) as view:
        assert (view["local_root"], view["root_cell"]) == (span_id(root), root_view["cell_address"])
        assert view["cell_address"] != view["root_cell"]


def test_span_of_another_trace_is_its_own_local_root(runtimes: Runtimes) -> None:
    """Nesting alone makes no relation."""
    other = tracer.start_span("other", context=Context())
    with runtimes.active(tracer.start_span("root")), runtimes.active(other) as view:
        assert (view["local_root"], view["root_cell"]) == (span_id(other), view["cell_address"])


def test_remote_parent_is_never_a_local_root(runtimes: Runtimes) -> None:
    """The first span made in this process is the root, and stays it below."""
    remote = remote_span()
    server = child(remote, "server")
    query = child(server, "query")
    with runtimes.active(remote) as remote_view, runtimes.active(server) as server_view, runtimes.active(query) as query_view:
        assert (remote_view["local_root"], remote_view["root_cell"]) == (NO_ID, 0)
        assert (server_view["local_root"], query_view["local_root"]) == (span_id(server), span_id(server))
        assert query_view["root_cell"] == server_view["cell_address"]


def test_local_root_of_a_span_is_settled_at_its_first_activation(runtimes: Runtimes) -> None:
    """Attached again elsewhere, with nothing or a sibling current, it keeps its root."""
    root = tracer.start_span("root")
    leaf, sibling = child(root), child(root)
    with runtimes.active(root), runtimes.active(leaf):
        pass
    with runtimes.active(leaf) as alone:
        assert alone["local_root"] == span_id(root)
    with runtimes.active(sibling), runtimes.active(leaf) as beside:
        assert beside["local_root"] == span_id(root)


def test_unsampled_span_has_a_local_root_too(runtimes: Runtimes) -> None:
    """It has no cell, so the id is handed from view to view."""
    root, leaf = remote_span(5, 6, 0, remote=False), remote_span(5, 7, 0, remote=False)
    with runtimes.active(root), runtimes.active(leaf) as view:
        assert (view["local_root"], view["root_cell"]) == (span_id(root), 0)


def test_root_that_is_gone_is_still_read_through_its_descendants(runtimes: Runtimes) -> None:
    """A view keeps the cells alive that it points to."""
    root = tracer.start_span("root")
    leaf = child(root)
    token = runtimes.ours.attach(Context({_SPAN_KEY: root}))
    inner = runtimes.ours.attach(Context({_SPAN_KEY: leaf}))
    address = runtimes.view["root_cell"]
    _native.span_ended(root.get_span_context().span_id)
    held = runtimes.ours.get_current()
    runtimes.ours.detach(inner)
    runtimes.ours.detach(token)
    del root, leaf, inner, token
    gc.collect()
    fields = _native.read_view(held)
    assert fields is not None and fields["root_cell"] == address


# Owner and spawner


def test_owner_is_the_task_that_attached(runtimes: Runtimes) -> None:
    """Outside a task there is none."""

    async def main() -> tuple[int, int]:
        with runtimes.active(tracer.start_span("in task")) as view:
            return view["owner"], id(asyncio.current_task())

    owner, task = asyncio.run(main())
    assert owner == task
    with runtimes.active(tracer.start_span("outside")) as view:
        assert view["owner"] == 0


def test_child_task_inherits_the_view_as_it_is(runtimes: Runtimes) -> None:
    """The owner of what a child inherits is the parent: that is how an un-awaited child finds it."""

    async def inherited() -> tuple[int, int]:
        return runtimes.view["owner"], runtimes.view["spawner"]

    async def main() -> None:
        with runtimes.active(tracer.start_span("parent")):
            assert await asyncio.create_task(inherited()) == (id(asyncio.current_task()), 0)

    asyncio.run(main())


def test_spawner_is_the_owner_of_the_inherited_view(runtimes: Runtimes) -> None:
    """Also for a second, nested span in the child, and for a span put back after it."""

    async def spawned(expected: tuple[int, int]) -> None:
        with runtimes.active(tracer.start_span("outer")) as outer:
            with runtimes.active(tracer.start_span("inner")) as inner:
                assert (outer["spawner"], outer["spawner_cell"]) == expected
                assert (inner["spawner"], inner["spawner_cell"]) == expected
            assert runtimes.view == outer

    async def main() -> None:
        with runtimes.active(tracer.start_span("parent")) as view:
            await asyncio.create_task(spawned((id(asyncio.current_task()), view["cell_address"])))

    asyncio.run(main())


def test_grandchild_is_spawned_by_the_child(runtimes: Runtimes) -> None:
    """Each task names the task right above it."""

    async def grandchild(parent: int) -> None:
        with runtimes.active(tracer.start_span("grandchild")) as view:
            assert view["spawner"] == parent

    async def middle() -> None:
        with runtimes.active(tracer.start_span("child")):
            await asyncio.create_task(grandchild(id(asyncio.current_task())))

    async def main() -> None:
        with runtimes.active(tracer.start_span("parent")):
            await asyncio.create_task(middle())

    asyncio.run(main())


def test_task_in_an_empty_context_has_no_spawner(runtimes: Runtimes) -> None:
    """Nothing was inherited."""

    async def alone() -> None:
        with runtimes.active(tracer.start_span("alone")) as view:
            assert (view["owner"], view["spawner"], view["spawner_cell"]) == (id(asyncio.current_task()), 0, 0)

    async def main() -> None:
        with runtimes.active(tracer.start_span("parent")):
            await asyncio.create_task(alone(), context=contextvars.Context())

    asyncio.run(main())


def test_span_from_outside_any_task_spawns_nothing(runtimes: Runtimes) -> None:
    """asyncio.run() below a span of the main thread."""

    async def main() -> None:
        assert runtimes.view["owner"] == 0
        with runtimes.active(tracer.start_span("inner")) as view:
            assert (view["spawner"], view["spawner_cell"]) == (0, 0)

    with runtimes.active(tracer.start_span("outer")):
        asyncio.run(main())


def test_worker_thread_is_spawned_by_the_task_it_works_for(runtimes: Runtimes) -> None:
    """to_thread() copies the context; run_in_executor() does not."""

    def work() -> tuple[bytes, int, int]:
        inherited = runtimes.view["span_id"]
        with runtimes.active(tracer.start_span("work")) as view:
            return inherited, view["owner"], view["spawner"]

    def unlinked() -> Any:
        return _native.read_view(runtimes.ours.get_current())

    async def main() -> None:
        span = tracer.start_span("request")
        with runtimes.active(span):
            assert await asyncio.to_thread(work) == (span_id(span), 0, id(asyncio.current_task()))
            with ThreadPoolExecutor(1) as pool:
                assert await asyncio.get_running_loop().run_in_executor(pool, unlinked) is None

    asyncio.run(main())


def test_attached_view_of_another_task_gets_a_new_owner(runtimes: Runtimes) -> None:
    """The span, its cell and its local root stay the same."""

    async def adopt(context: Any) -> _native.ViewFields:
        token = runtimes.ours.attach(context)
        try:
            assert runtimes.view["owner"] == id(asyncio.current_task())
            return runtimes.view
        finally:
            runtimes.ours.detach(token)

    async def main() -> None:
        root = tracer.start_span("root")
        with runtimes.active(root), runtimes.active(child(root)) as original:
            context = runtimes.ours.get_current()
            adopted = await asyncio.create_task(adopt(context), context=contextvars.Context())
        same = ("trace_id", "span_id", "local_root", "flags", "cell_address", "root_cell", "cell")
        assert [adopted[key] for key in same] == [original[key] for key in same]  # type: ignore[literal-required]

    asyncio.run(main())


def test_view_of_the_same_owner_is_attached_as_it_is(runtimes: Runtimes) -> None:
    """No new object for what is already right."""
    with runtimes.active(tracer.start_span("request")):
        context = runtimes.ours.get_current()
        token = runtimes.ours.attach(context)
        assert runtimes.ours.get_current() is context
        runtimes.ours.detach(token)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in 3.12")
def test_eager_task_owns_what_it_attaches(runtimes: Runtimes) -> None:
    """In its first step too, which runs inside the step of its parent."""

    async def eager(parent: int) -> None:
        for _ in range(2):
            with runtimes.active(tracer.start_span("eager")) as view:
                assert (view["owner"], view["spawner"]) == (id(asyncio.current_task()), parent)
            await asyncio.sleep(0)

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        with runtimes.active(tracer.start_span("parent")) as parent:
            task = asyncio.create_task(eager(id(asyncio.current_task())))
            assert runtimes.view == parent
            await task

    asyncio.run(main())


def test_200_concurrent_tasks_each_see_their_own_span(runtimes: Runtimes) -> None:
    """Across suspensions, with nested spans and children."""

    async def inside(expected: bytes) -> None:
        await asyncio.sleep(0)
        assert runtimes.view["span_id"] == expected

    async def request(number: int) -> None:
        span = tracer.start_span(f"request {number}")
        with runtimes.active(span):
            for _ in range(5):
                inner = child(span)
                with runtimes.active(inner):
                    await asyncio.gather(inside(span_id(inner)), asyncio.sleep(0))
                view = runtimes.view
                assert (view["trace_id"], view["span_id"]) == (trace_id(span), span_id(span))
                assert (view["owner"], view["cell"]["name"]) == (id(asyncio.current_task()), f"request {number}")  # type: ignore[index]

    async def main() -> None:
        await asyncio.gather(*(request(number) for number in range(200)))

    asyncio.run(main())


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
                assert view is not None and view["cell"] == {"span_id": span_id(span), "ended": True, "name": "request"}
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
            assert fields is not None and fields["cell"] is not None and fields["cell"]["ended"]


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
        assert fields is not None and fields["cell"] is not None and fields["cell"]["ended"]
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


@pytest.mark.parametrize("span", [trace.INVALID_SPAN, None, remote_span(0, 5), remote_span(5, 0), remote_span(1 << 128, 5)])
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
        assert (view["flags"], view["cell"]) == (SAMPLED | RECORDING, {"span_id": view["span_id"], "ended": False, "name": "other"})
        span.recording = False
        with runtimes.active(span) as later:
            assert (later["flags"], later["cell_address"]) == (SAMPLED, view["cell_address"])
            assert later["cell"] is not None and later["cell"]["ended"]


def test_a_second_type_of_contexts_is_refused() -> None:
    """The type of views is made once in a process, over OpenTelemetry's Context."""
    Runtimes()
    arguments = (_SPAN_KEY, NonRecordingSpan, {}, asyncio._get_running_loop, print)
    with pytest.raises(RuntimeError, match="spans cannot be read"):
        _native.ContextVarsRuntimeContext(contextvars.ContextVar("x"), dict, *arguments)  # type: ignore[arg-type]
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
    assert view == context and isinstance(view, Context) and repr(view) == repr(context) and list(view) == list(context)
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
        with pytest.raises(ValueError):
            change()
    assert type(view.copy()) is dict
    with pytest.raises(TypeError):
        runtimes.ours.view_type()


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
    """Each with a trace id and a name of its own."""

    class Recording:
        _end_time = None

        def __init__(self, number: int) -> None:
            self._name = f"span {number}"
            self._context = SpanContext((1 << 100) + number, (1 << 42) + number, False, TraceFlags(1))

    def activate(numbers: range) -> None:
        for number in numbers:
            with runtimes.active(Recording(number)):
                pass
            assert _native.span_ended((1 << 42) + number)

    activate(range(1000))
    gc.collect()
    blocks = sys.getallocatedblocks()
    activate(range(100_000))
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200
