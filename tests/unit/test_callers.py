"""The caller of a slow span is the stack that Python had when the span began, on those of the tasks that awaited it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind

from otel_asyncprof import Profiler, _callers, _native, span_processor
from otel_asyncprof._config import ProfilerConfig
from otel_asyncprof.export.in_memory import InMemoryProfileExporter

HERE = os.path.basename(__file__)
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
span_processor.ensure_registered(provider)
tracer = provider.get_tracer("driver")


@pytest.fixture(scope="module")
def profiler() -> Iterator[None]:
    """A profiler runs: stacks are read by its guarded copy."""
    profiler = Profiler(exporter=InMemoryProfileExporter(), rate=1)
    assert profiler.start()
    yield
    profiler.shutdown()


@pytest.fixture(autouse=True)
def watching(profiler: None) -> Iterator[None]:
    """Every CLIENT span counts as slow."""
    exporter.clear()
    span_processor.watch(ProfilerConfig(slow_span_threshold=0))
    yield
    span_processor.watch(None)


def only_span() -> ReadableSpan:
    [span] = exporter.get_finished_spans()
    return span


def functions(span: ReadableSpan) -> list[str]:
    """The functions of the stacktrace that are in this file, root first."""
    lines = str((span.attributes or {})["code.stacktrace"]).splitlines()
    return [line.rpartition(" in ")[2] for line in lines if HERE in line]


def query(**options: Any) -> None:
    """What an instrumented driver does."""
    with tracer.start_as_current_span("SELECT", kind=SpanKind.CLIENT, **options):
        pass


async def find_user() -> int:
    query(); return sys._getframe().f_lineno  # noqa: E702  # fmt: skip


def python_stack() -> list[tuple[str, str, int]]:
    """Of the function that called this one: what Python says, root first."""
    frames, frame = [], sys._getframe(1)
    while frame:
        frames.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return frames[::-1]


def test_stack_of_a_thread_is_the_one_that_python_has() -> None:
    """Every frame, every line."""
    stack, expected = _native.caller_stack(), python_stack()
    assert stack is not None
    assert [tuple(frame) for frame in _callers.frames_of(stack)] == expected


def test_first_frame_of_the_application_is_named_with_file_and_line() -> None:
    """The four attributes of the semantic conventions."""
    query(); line = sys._getframe().f_lineno  # noqa: E702  # fmt: skip
    attributes = only_span().attributes or {}
    # query() stands for the driver here, but it is in this file too.
    assert attributes["code.function.name"] == "query"
    assert attributes["code.file.path"] == __file__
    assert isinstance(attributes["code.line.number"], int)
    assert f'"{__file__}", line {line}, in test_first' in str(attributes["code.stacktrace"])


async def direct() -> None:
    await find_user()


async def by_gather() -> None:
    await asyncio.gather(find_user(), asyncio.sleep(0))


async def by_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(find_user())


async def by_wait_for() -> None:
    await asyncio.wait_for(find_user(), 10)


async def by_shield() -> None:
    await asyncio.shield(find_user())


async def by_task() -> None:
    await asyncio.create_task(find_user())


async def by_two_tasks() -> None:
    await asyncio.create_task(by_gather())


WAYS: dict[Callable[[], Awaitable[None]], list[str]] = {
    direct: ["direct"],
    by_gather: ["by_gather"],
    by_group: ["by_group"],
    by_wait_for: ["by_wait_for"],
    by_shield: ["by_shield"],
    by_task: ["by_task"],
    by_two_tasks: ["by_two_tasks", "by_gather"],
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_caller_leads_through_the_tasks_that_await_it(way: Callable[[], Any], kind: str) -> None:
    """From what started the loop down to the query."""
    run = asyncio.run if kind == "asyncio" else uvloop.run
    run(way())
    start = sys._getframe().f_code.co_name
    assert functions(only_span()) == [start, *WAYS[way], "find_user", "query"]


def test_query_in_a_worker_thread_has_the_stack_of_the_thread() -> None:
    """Where no loop runs."""
    thread = threading.Thread(target=query)
    thread.start()
    thread.join()
    assert functions(only_span()) == ["query"]
    assert "_bootstrap" in str((only_span().attributes or {})["code.stacktrace"])


def test_query_in_a_worker_of_the_loop_has_no_frames_of_the_loop() -> None:
    """A callback of the loop has them: nothing else says where it comes from."""
    asyncio.run(asyncio.to_thread(query))
    assert functions(only_span()) == ["query"]


@pytest.mark.parametrize("end_time", [None, 1])
def test_quick_span_is_left_alone(end_time: int | None) -> None:
    """An end given by the caller counts."""
    span_processor.watch(ProfilerConfig(slow_span_threshold=3_600_000 if end_time is None else 0.001))
    tracer.start_span("SELECT", kind=SpanKind.CLIENT, start_time=1 if end_time else None).end(end_time)
    assert not any(name.startswith("code.") for name in only_span().attributes or {})


@pytest.mark.parametrize("kind", [kind for kind in SpanKind if kind is not SpanKind.CLIENT])
def test_other_kinds_are_left_alone(kind: SpanKind) -> None:
    """Unless the configuration names them."""
    tracer.start_span("work", kind=kind).end()
    assert not any(name.startswith("code.") for name in only_span().attributes or {})
    exporter.clear()
    span_processor.watch(ProfilerConfig(slow_span_threshold=0, caller_kinds=(kind.name.lower(),)))
    tracer.start_span("work", kind=kind).end()
    assert "code.stacktrace" in (only_span().attributes or {})


def test_attributes_that_are_there_stay() -> None:
    """Of the instrumentation, or of the application."""
    present = {"code.function.name": "mine", "code.stacktrace": "mine too"}
    query(attributes=present)
    attributes = only_span().attributes or {}
    assert {name: attributes[name] for name in present} == present
    assert "code.file.path" not in attributes, "a file for somebody else's function"


def test_span_is_as_before_when_it_has_ended() -> None:
    """Its own end() is back, and ending it twice warns as ever."""
    span: Any = tracer.start_span("SELECT", kind=SpanKind.CLIENT)
    span.end()
    assert "end" not in vars(span)
    assert len(exporter.get_finished_spans()) == 1


def test_nothing_is_taken_of_unsampled_spans_and_when_nobody_profiles() -> None:
    """Nobody would see it."""
    unsampled = TracerProvider(sampler=ALWAYS_OFF)
    span_processor.ensure_registered(unsampled)
    assert "end" not in vars(unsampled.get_tracer("t").start_span("SELECT", kind=SpanKind.CLIENT))
    span_processor.watch(None)
    assert "end" not in vars(tracer.start_span("SELECT", kind=SpanKind.CLIENT))


def test_code_objects_are_let_go() -> None:
    """With the span, or earlier."""
    namespace: dict[str, Any] = {"query": query}
    exec("def made():\n query()", namespace)
    code = namespace["made"].__code__
    before = sys.getrefcount(code)
    for _ in range(10):
        namespace["made"]()
    assert sys.getrefcount(code) == before


def recurse(depth: int) -> None:
    """Calls itself."""
    if depth:
        recurse(depth - 1)
    else:
        query()


def test_deep_stack_keeps_both_ends() -> None:
    """What is left out is counted."""
    asyncio.run(asyncio.wait_for(deep(300), 10))
    text = str((only_span().attributes or {})["code.stacktrace"])
    names = functions(only_span())
    assert names[0] == "test_deep_stack_keeps_both_ends"
    assert names[-1] == "query"
    own = [line for line in text.splitlines() if line.endswith("in recurse")]
    assert 60 < len(own) < 96
    assert "frames left out)" in text


async def deep(depth: int) -> None:
    """Queries from far down."""
    recurse(depth)


@pytest.mark.parametrize(("link", "expected"), [("span", 3), ("local_root", 2)])
def test_spans_that_have_a_profile_name_it(link: str, expected: int) -> None:
    """A local root: no parent, or one in another process."""
    span_processor.watch(ProfilerConfig(link=link))
    remote = trace.SpanContext(1, 2, is_remote=True, trace_flags=trace.TraceFlags(1))
    with tracer.start_as_current_span("root"), tracer.start_as_current_span("inner"):
        pass
    tracer.start_span("served", trace.set_span_in_context(trace.NonRecordingSpan(remote))).end()
    ids = [(span.attributes or {}).get("pyroscope.profile.id") for span in exporter.get_finished_spans()]
    assert len([i for i in ids if i is not None]) == expected
    for span in exporter.get_finished_spans():
        assert (span.attributes or {}).get("pyroscope.profile.id") in (None, f"{span.context.span_id:016x}")


def test_profile_ids_can_be_left_out() -> None:
    """For backends that have no use for them."""
    span_processor.watch(ProfilerConfig(profile_id=False))
    tracer.start_span("root").end()
    assert not only_span().attributes


def test_frames_of_installed_packages_are_passed_over() -> None:
    """The driver is not the caller, the code that uses it is; where all is installed, the innermost frame stands in."""
    namespace: dict[str, Any] = {"query": query}
    driver = "/srv/venv/lib/python3/site-packages/driver/cursor.py"
    exec(compile("def execute(function):\n return function()", driver, "exec"), namespace)

    def repository() -> None:
        namespace["execute"](lambda: namespace["execute"](span))

    span: Callable[[], None] = eval(compile("lambda: tracer.start_span('q', kind=kind).end()", driver, "eval"), {
        "tracer": tracer, "kind": SpanKind.CLIENT,
    })  # fmt: skip
    repository()
    attributes = only_span().attributes or {}
    assert str(attributes["code.function.name"]).endswith("repository.<locals>.<lambda>")
    assert attributes["code.file.path"] == __file__
