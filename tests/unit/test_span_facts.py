"""What is read without asking the interpreter is what the interpreter would say; objects used again begin anew."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import pytest
from opentelemetry.context.context import Context
from opentelemetry.trace import SpanContext, TraceFlags
from opentelemetry.trace.propagation import _SPAN_KEY
from span_helpers import RECORDING, SAMPLED, Runtimes, child, span_id, tracer

from otel_asyncprof import _native

pytest_plugins = "span_fixtures"

IDS = SpanContext((1 << 100) + 3, (1 << 50) + 5, False, TraceFlags(1))
OTHER_IDS = SpanContext(7, 9, False, TraceFlags(1))


class Plain:
    """Keeps everything in the instance, as the SDK's spans do."""

    def __init__(self) -> None:
        self._context, self._end_time, self._name = IDS, None, "plain"


class Ended(Plain):
    """Has a number there."""

    def __init__(self) -> None:
        super().__init__()
        self._end_time: int | None = 1


class OfTheClass:
    """Keeps nothing in the instance."""

    _context, _end_time, _name = IDS, None, "of the class"


class Computed(Plain):
    """Answers with a property, whatever the instance holds."""

    @property
    def _context(self) -> SpanContext:  # type: ignore[override]
        return IDS

    @_context.setter
    def _context(self, value: object) -> None:
        vars(self)["_context"] = OTHER_IDS


class Slotted:
    """Has no dict."""

    __slots__ = ("_context", "_end_time", "_name")

    def __init__(self) -> None:
        self._context, self._end_time, self._name = IDS, None, "slotted"


class Intercepting(Plain):
    """Is asked for every attribute."""

    def __getattribute__(self, name: str) -> Any:
        return IDS if name == "_context" else super().__getattribute__(name)


class Late(Plain):
    """Gets a name only once it has been active."""

    def __init__(self) -> None:
        self._context, self._end_time = IDS, None


def read(runtimes: Runtimes, span: object) -> tuple[bytes, bytes, bool, str | None]:
    """What a view says of the span: ids, whether it has ended, name. Afterwards the span is forgotten."""
    with runtimes.active(span) as view:
        assert view["cell"] is not None
        found = view["trace_id"], view["span_id"], view["cell"]["ended"], view["cell"]["name"]
    _native.span_ended(int.from_bytes(found[1], "big"))
    return found


def expected(name: str | None, ids: SpanContext = IDS, ended: bool = False) -> tuple[bytes, bytes, bool, str | None]:
    """The same of a SpanContext."""
    return ids.trace_id.to_bytes(16, "big"), ids.span_id.to_bytes(8, "big"), ended, name


def test_spans_of_every_make_are_read_as_the_interpreter_reads_them(runtimes: Runtimes) -> None:
    """More types than are remembered, each twice."""
    for _ in range(2):
        assert read(runtimes, Plain()) == expected("plain")
        assert read(runtimes, Ended()) == expected("plain", ended=True)
        assert read(runtimes, OfTheClass()) == expected("of the class")
        assert read(runtimes, Computed()) == expected("plain")
        assert read(runtimes, Slotted()) == expected("slotted")
        assert read(runtimes, Intercepting()) == expected("plain")
        assert read(runtimes, Late()) == expected(None)


PROGRAM = """
import sys
sys.path[:0] = {path!r}
import test_span_facts as facts
from span_helpers import Runtimes
runtimes = Runtimes()
for make in {makes}:
    span = getattr(facts, make)()
    for _ in range(2):
        assert facts.read(runtimes, span) == facts.expected(getattr(span, "_name", None)), make
"""


@pytest.mark.parametrize("make", ["OfTheClass", "Computed", "Slotted", "Intercepting", "Late", "Plain"])
def test_the_first_type_that_is_met_is_read_rightly_too(make: str) -> None:
    """In a process of its own, where there is still room to remember it."""
    here = os.path.dirname(__file__)
    program = PROGRAM.format(path=[here, os.path.dirname(here)], makes=[make])
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_span_whose_attributes_have_moved_to_a_dict_is_still_read(runtimes: Runtimes) -> None:
    """As they do when somebody asks for vars(), replaces them, or adds many."""
    for make in (lambda span: vars(span), lambda span: setattr(span, "__dict__", dict(vars(span)))):
        span = Plain()
        assert read(runtimes, span) == expected("plain")
        make(span)
        span._context = OTHER_IDS
        assert read(runtimes, span) == expected("plain", OTHER_IDS)
    crowded = Plain()
    for number in range(100):
        setattr(crowded, f"attribute_{number}", number)
    assert read(runtimes, crowded) == expected("plain")
    del crowded._end_time
    crowded.is_recording = lambda: True  # type: ignore[attr-defined]
    with runtimes.active(crowded) as view:
        assert view["flags"] == SAMPLED | RECORDING


@pytest.mark.parametrize("ids", [(-5, 6), (1 << 200, 6), (5, -6), (5, 1 << 100)])
def test_ids_out_of_range_are_taken_modulo_their_width(runtimes: Runtimes, ids: tuple[int, int]) -> None:
    """Only a foreign SpanContext can have them and say that it is valid."""

    class Odd:
        _end_time, _name = None, "odd"
        _context = (*ids, False, TraceFlags(1), None, True)

    trace_number, span_number = ids
    trace_id, span_id, *_ = read(runtimes, Odd())
    assert trace_id == (trace_number % (1 << 128)).to_bytes(16, "big")
    assert span_id == (span_number % (1 << 64)).to_bytes(8, "big")


# Who is the owner


def test_each_loop_has_its_own_running_task(runtimes: Runtimes) -> None:
    """Two loops in two threads, and a thread without one beside them."""
    together = threading.Barrier(3)
    found: dict[str, tuple[int, int]] = {}

    def owner(task: object) -> tuple[int, int]:
        with runtimes.active(tracer.start_span("request")) as view:
            return view["owner"], id(task) if task is not None else 0

    async def main(name: str) -> None:
        together.wait(30)
        found[name] = owner(asyncio.current_task())
        together.wait(30)

    threads = [threading.Thread(target=lambda name=name: asyncio.run(main(name))) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    together.wait(30)
    found["none"] = owner(None)
    together.wait(30)
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert all(seen == true for seen, true in found.values())
    assert found["none"] == (0, 0)


REPLACED = """
import asyncio, sys
sys.path[:0] = {path!r}
from span_helpers import Runtimes, tracer

async def owner(runtimes):
    with runtimes.active(tracer.start_span("request")) as view:
        return view["owner"] == id(asyncio.current_task())

asyncio.run(owner(Runtimes(lambda: asyncio._get_running_loop())))
assert asyncio.run(owner(Runtimes()))
"""


def test_where_the_running_loop_is_kept_is_looked_for_again_at_each_start() -> None:
    """A function in the place of asyncio's own does not say; asyncio's, at the next start, does."""
    program = REPLACED.format(path=[os.path.dirname(os.path.dirname(__file__))])
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_callback_of_a_loop_owns_nothing(runtimes: Runtimes) -> None:
    """The loop runs, but no task."""

    async def main() -> int:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[int] = loop.create_future()

        def callback() -> None:
            with runtimes.active(tracer.start_span("callback")) as view:
                done.set_result(view["owner"])

        loop.call_soon(callback)
        return await done

    assert asyncio.run(main()) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_child_is_no_longer_in_the_loop(runtimes: Runtimes) -> None:
    """asyncio says so, and the task that forked is not the owner there."""

    async def main() -> int:
        with runtimes.active(tracer.start_span("parent")) as view:
            assert view["owner"] == id(asyncio.current_task())
        child_process = os.fork()
        if child_process == 0:
            ok = False
            try:
                with runtimes.active(tracer.start_span("child")) as view:
                    ok = asyncio._get_running_loop() is None and view["owner"] == 0
            finally:
                os._exit(0 if ok else 1)
        return os.waitpid(child_process, 0)[1]

    assert asyncio.run(main()) == 0


# Objects that are used again


def test_view_used_again_has_nothing_of_its_former_life(runtimes: Runtimes) -> None:
    """No content, no attributes, no weak references, no spawner."""

    async def spawned() -> Any:
        with runtimes.active(child(root, "before")):
            view: Any = runtimes.ours.get_current()
            view.attribute = "before"
            return id(view), weakref.ref(view)

    async def main() -> Any:
        with runtimes.active(root):
            return await asyncio.create_task(spawned())

    root = tracer.start_span("root")
    for _ in range(40):  # more than are kept
        _, reference = contextvars.Context().run(asyncio.run, main())
        assert reference() is None
        span = tracer.start_span("after")
        token = runtimes.ours.attach(Context({_SPAN_KEY: span}))
        view: Any = runtimes.ours.get_current()
        assert (dict(view), vars(view), weakref.getweakrefcount(view)) == ({_SPAN_KEY: span}, {}, 0)
        assert (runtimes.view["span_id"], runtimes.view["owner"], runtimes.view["spawner"]) == (span_id(span), 0, 0)
        runtimes.ours.detach(token)


def test_weak_reference_with_a_callback_is_told_once(runtimes: Runtimes) -> None:
    """When the view dies, and no more when it is used again."""
    told: list[object] = []
    references = []
    for _ in range(3):
        with runtimes.active(tracer.start_span("request")):
            references.append(weakref.ref(runtimes.ours.get_current(), told.append))
    assert told == references


def test_a_long_chain_of_contexts_is_freed(runtimes: Runtimes) -> None:
    """Without going as deep as the chain is long."""
    context = Context()
    span = tracer.start_span("request")
    for _ in range(200_000):
        context = runtimes.ours.view(Context({_SPAN_KEY: span, "before": context}))
    reference = weakref.ref(context)
    del context
    assert reference() is None


def test_cell_used_again_leaves_the_list_of_open_spans_whole(runtimes: Runtimes) -> None:
    """Which shows when the table grows: then all open spans are found anew from the list."""

    class Recording(Plain):
        def __init__(self, number: int) -> None:
            super().__init__()
            self._context = SpanContext(1, (1 << 52) + number, False, TraceFlags(1))

    def open_cells(*numbers: int) -> None:
        for number in numbers:
            runtimes.ours.view(Context({_SPAN_KEY: Recording(number)}))

    def end(*numbers: int) -> list[bool]:
        return [_native.span_ended((1 << 52) + number) for number in numbers]

    first, last = 10, 5_000  # more than the table begins with, whatever ran before
    before = runtimes.ours.open_spans
    open_cells(1, 2, 3)
    assert end(1, 3, 2) == [True] * 3
    open_cells(4, 5, 6)
    assert end(6, 4) == [True] * 2
    open_cells(*range(first, last))
    assert all(end(5, *range(first, last)))
    assert runtimes.ours.open_spans == before
