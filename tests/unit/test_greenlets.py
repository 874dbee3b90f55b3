"""Greenlets that SQLAlchemy makes: what the readers say of them is what Python says, whatever uses the C stack."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import logging
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import greenlet
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from reader_helpers import prepare, settle
from sqlalchemy.util import await_only, greenlet_spawn

from otel_asyncprof import Profiler, _greenlets, _libraries, _native, span_processor
from otel_asyncprof._config import ProfilerConfig
from otel_asyncprof.export.in_memory import InMemoryProfileExporter

HERE = os.path.basename(__file__)
MAX_AWAIT_CHAIN = 512
Frame = tuple[str, str, int]

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
span_processor.ensure_registered(provider)
tracer = provider.get_tracer("driver")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop whose tasks stand still when it does; they are cancelled at the end."""
    prepare()
    _libraries.learn(thoroughly=True)
    loop = asyncio.new_event_loop()
    yield loop
    for task in asyncio.all_tasks(loop):
        task.cancel()
    settle(loop)
    loop.close()


def describe(frame: types.FrameType) -> Frame:
    return frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno


def python_frames(coroutine: Any) -> list[Frame]:
    """The await chain of a coroutine as Python has it, with the frames of a greenlet behind its greenlet_spawn()."""
    frames: list[Frame] = []
    while isinstance(coroutine, types.CoroutineType):
        frames.append(describe(coroutine.cr_frame))
        if coroutine.cr_code is greenlet_spawn.__code__:
            frame, of_greenlet = coroutine.cr_frame.f_locals["context"].gr_frame, []
            while frame is not None:
                of_greenlet.append(describe(frame))
                frame = frame.f_back
            frames += reversed(of_greenlet)
        coroutine = coroutine.cr_await
    return frames


async def never() -> None:
    await asyncio.get_running_loop().create_future()


def wait() -> None:
    await_only(never())


def in_a_call() -> None:
    wait()


def in_a_callback() -> None:
    sorted([1], key=lambda _: in_a_call())


def in_a_partial() -> None:
    functools.partial(in_a_callback)()


def in_a_generator() -> None:
    list(in_a_partial() for _ in range(1))  # noqa: C400


def deep(depth: int) -> None:
    if depth:
        list(map(deep, [depth - 1]))
    else:
        wait()


def deeper(depth: int) -> None:
    if depth:
        deeper(depth - 1)
    else:
        wait()


async def spawns(function: Callable[..., Any], *arguments: Any) -> None:
    await greenlet_spawn(function, *arguments)


WAYS = [wait, in_a_call, in_a_callback, in_a_partial, in_a_generator, functools.partial(deep, 30)]


def read(task: asyncio.Task[Any]) -> list[Frame]:
    return [tuple(frame) for frame in _native.read_task(id(task))["frames"]]


def test_frames_of_greenlets_stand_where_they_were_made(loop: asyncio.AbstractEventLoop) -> None:
    """Through calls and through C; all at once, so that one has run on the C stack of the other."""
    tasks = [loop.create_task(spawns(way)) for way in WAYS * 3]
    settle(loop)
    for task in tasks:
        assert read(task) == python_frames(task.get_coro())
        functions = [function for function, _, _ in read(task)]
        assert functions[:2] == ["spawns", "greenlet_spawn"]
        assert functions[-3:] == ["wait", "await_only", "never"]


def test_more_frames_than_a_stack_may_have_are_cut_off(loop: asyncio.AbstractEventLoop) -> None:
    """The bound of an await chain counts them too."""
    task = loop.create_task(spawns(deeper, MAX_AWAIT_CHAIN))
    settle(loop)
    functions = [function for function, _, _ in read(task)]
    assert functions == ["spawns", "greenlet_spawn", "<truncated>"]


def test_a_greenlet_that_is_done_leaves_no_frames(loop: asyncio.AbstractEventLoop) -> None:
    """Nor does one that has not begun, or runs."""
    done = greenlet.greenlet(lambda: None)
    assert _native.read_greenlet(id(done)) == []
    done.switch()
    assert _native.read_greenlet(id(done)) == []
    assert _native.read_greenlet(id(greenlet.getcurrent())) == []


def test_what_is_no_greenlet_is_not_read(loop: asyncio.AbstractEventLoop) -> None:
    """Nothing mapped, another object, and one whose frames lead back to themselves."""
    assert [_native.read_greenlet(address) for address in (8, 1 << 62, id(loop))] == [None, None, None]
    words = 128
    frame, top, state, fake = ((ctypes.c_uint64 * words)() for _ in range(4))
    addresses = [ctypes.addressof(memory) for memory in (frame, frame, top, state)]
    for memory, address in zip((frame, top, state, fake), addresses, strict=True):
        memory[:] = [address] * words
    fake[1] = id(greenlet.greenlet)  # its type
    assert _native.read_greenlet(ctypes.addressof(fake)) is None


# callers


@pytest.fixture(scope="module")
def profiler() -> Iterator[None]:
    """A profiler runs: stacks are read by its guarded copy."""
    profiler = Profiler(exporter=InMemoryProfileExporter(), rate=1)
    assert profiler.start()
    span_processor.watch(ProfilerConfig(slow_span_threshold=0))
    yield
    profiler.shutdown()


def query() -> None:
    with tracer.start_as_current_span("SELECT", kind=SpanKind.CLIENT):
        pass


async def query_later() -> None:
    await asyncio.sleep(0)
    query()


def query_in_greenlet() -> None:
    list(map(lambda _: query(), [1]))  # noqa: C417


def query_outside() -> None:
    await_only(query_later())


def functions() -> list[str]:
    """The functions of this file in the stack of the only span, root first."""
    [span] = exporter.get_finished_spans()
    lines = str((span.attributes or {})["code.stacktrace"]).splitlines()
    return [line.rpartition(" in ")[2] for line in lines if HERE in line or "in greenlet_spawn" in line]


@pytest.mark.parametrize("way", [query_in_greenlet, query_outside])
@pytest.mark.parametrize("in_thread", [False, True])
def test_a_span_has_its_caller_on_both_sides_of_a_greenlet(way: Any, in_thread: bool, profiler: None) -> None:
    """Also in a thread in which no greenlet has been seen before."""
    exporter.clear()

    def start() -> None:
        asyncio.run(spawns(way))

    thread = threading.Thread(target=start)
    if in_thread:
        thread.start()
        thread.join()
    else:
        start()
    own = {
        query_in_greenlet: ["query_in_greenlet", "query_in_greenlet.<locals>.<lambda>"],
        query_outside: ["query_outside", "query_later"],
    }
    name = test_a_span_has_its_caller_on_both_sides_of_a_greenlet.__name__
    below = [] if in_thread else [name]
    assert functions() == [*below, f"{name}.<locals>.start", "spawns", "greenlet_spawn", *own[way], "query"]


# trust


def test_readers_that_do_not_agree_with_python_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One line says so."""
    used: list[Any] = []
    monkeypatch.setattr(_native, "read_greenlet", lambda address: [1])
    monkeypatch.setattr(_native, "use_greenlets", used.append)
    with caplog.at_level(logging.WARNING, "otel_asyncprof._greenlets"):
        assert _greenlets.learn()
    assert used == []
    [record] = caplog.records
    assert record.getMessage().startswith(
        "otel_asyncprof does not see what SQLAlchemy runs in greenlets: "
        f"greenlet {greenlet.__version__} has frames [[1], [1], [1]], Python says "
    )


def test_nothing_is_imported_for_it() -> None:
    """A program that uses neither has neither."""
    program = """
import sys
from otel_asyncprof.testing import capture
with capture():
    pass
print(sorted({"greenlet", "sqlalchemy", "anyio"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
