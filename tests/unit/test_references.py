"""One binary serves all versions, also those in which None is counted like any other object."""

from __future__ import annotations

import asyncio
import re
import sys
import types
import weakref
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from reader_helpers import prepare

from otel_asyncprof import _native
from otel_asyncprof.testing import capture

EXTENSION = Path(__file__).resolve().parents[2] / "ext"


def test_no_macro_is_used_that_depends_on_the_headers_idea_of_immortality() -> None:
    """Compiled with headers of 3.12 or later, such a macro takes a reference to None too few in 3.11."""
    macro = re.compile(r"\bPy_RETURN_(NONE|TRUE|FALSE|NOTIMPLEMENTED)\b;")
    sources = sorted(EXTENSION.rglob("*.c"))
    assert len(sources) > 20
    assert [path.name for path in sources if macro.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal")
def test_calls_that_return_none_leave_its_count_alone() -> None:
    """A hundred thousand of them would end the process."""
    prepare()
    before = sys.getrefcount(None)
    for _ in range(1000):
        _native.read_link(0)
        _native.read_view(object())
        _native.stop()
    assert abs(sys.getrefcount(None) - before) < 100


class Object:
    """What a local variable, a span's attribute or a closure may hold."""


def test_nothing_of_the_application_is_kept_alive() -> None:
    """A task, its coroutine, function and code, a frame's local, a span and a thread die with their last reference."""

    async def waits(held: Object) -> None:
        await asyncio.get_running_loop().create_future()
        assert held

    async def main(ticks: int) -> dict[str, int]:
        begun = _native.stats()["ticks"]
        held = Object()
        function = types.FunctionType(waits.__code__.replace(co_name="own"), globals(), "own")
        span = TracerProvider().get_tracer("test").start_span("own")
        with trace.use_span(span, end_on_exit=True):
            task = asyncio.create_task(function(held), name="own")
        await asyncio.sleep(0)
        objects = {"task": task, "coroutine": task.get_coro(), "function": function, "code": function.__code__}
        objects |= {"local": held, "span": span}
        dying = {name: weakref.ref(value) for name, value in objects.items()}
        while _native.stats()["ticks"] < begun + ticks:
            await asyncio.sleep(0.001)
        counts = {name: sys.getrefcount(value) for name, value in objects.items()}
        del function, span, held, objects
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task
        assert {name for name, reference in dying.items() if reference() is not None} == set()
        return counts

    alone = asyncio.run(main(0))
    with capture(1000):
        profiled = asyncio.run(main(20))
    assert profiled == alone
