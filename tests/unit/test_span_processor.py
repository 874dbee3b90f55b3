"""Spans that end are marked, whichever provider made them and whenever that was set."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any

import opentelemetry.context as otel
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_asyncprof import _native, _runtime_context
from otel_asyncprof.span_processor import ProfilingSpanProcessor, ensure_registered


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    """Views are made."""
    _runtime_context.install()
    yield
    _runtime_context.uninstall()


def ours(provider: TracerProvider) -> int:
    """How many of our processors a provider has."""
    processors = provider._active_span_processor._span_processors
    return sum(isinstance(processor, ProfilingSpanProcessor) for processor in processors)


def cell(context: Any) -> _native.CellFields:
    """The cell of the span in a context."""
    fields = _native.read_view(context)
    assert fields is not None
    assert fields["cell"] is not None
    return fields["cell"]


def test_span_is_marked_when_it_ends() -> None:
    """Not before: the context outlives it in a task it has spawned."""
    provider = TracerProvider()
    assert ensure_registered(provider)
    with provider.get_tracer("test").start_as_current_span("request"):
        held = otel.get_current()
        assert not cell(held)["ended"]
    assert cell(held)["ended"]


def test_inner_span_ends_alone() -> None:
    """The outer one goes on."""
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("outer"):
        outer = otel.get_current()
        with tracer.start_as_current_span("inner"):
            inner = otel.get_current()
        assert (cell(outer)["ended"], cell(inner)["ended"]) == (False, True)


def test_provider_that_nobody_registered_is_noticed_by_its_first_active_span() -> None:
    """A provider set late, or never set as the global one."""
    provider = TracerProvider()
    with provider.get_tracer("test").start_as_current_span("request"):
        held = otel.get_current()
    assert (cell(held)["ended"], ours(provider)) == (True, 1)


def test_one_processor_is_added_however_a_provider_is_met() -> None:
    """Registered again at each export, and noticed by its spans."""
    provider = TracerProvider()
    for _ in range(3):
        assert ensure_registered(provider)
        with provider.get_tracer("test").start_as_current_span("request"):
            pass
    assert ours(provider) == 1


def test_concurrent_processors_are_served_too() -> None:
    """on_end then runs in another thread."""
    provider = TracerProvider(active_span_processor=ConcurrentMultiSpanProcessor())
    with provider.get_tracer("test").start_as_current_span("request"):
        held = otel.get_current()
    assert (cell(held)["ended"], ours(provider)) == (True, 1)
    provider.shutdown()


def test_provider_without_processors_is_left_alone() -> None:
    """The API's proxy, until a provider is set."""
    assert not ensure_registered(trace.ProxyTracerProvider())
    assert not ensure_registered(trace.NoOpTracerProvider())


def test_provider_that_refuses_is_reported_and_not_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is raised."""

    class Refusing:
        """A provider that takes no processor."""

        asked = 0

        def add_span_processor(self, processor: Any) -> None:
            """Fails."""
            self.asked += 1
            raise RuntimeError("no")

    provider = Refusing()
    assert not ensure_registered(provider)
    ensure_registered(provider)
    assert provider.asked == 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_processor_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a span looks like, the application's call to end() returns."""

    class Broken(ReadableSpan):
        @property
        def context(self) -> Any:
            """Fails."""
            raise RuntimeError("no")

    processor = ProfilingSpanProcessor()
    processor.on_end(ReadableSpan("without a context"))
    processor.on_end(Broken("broken"))
    processor.on_end(ReadableSpan("odd", trace.SpanContext(1 << 200, 1 << 200, False)))
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []
    assert processor.force_flush() is True
    processor.shutdown()


def test_exported_spans_are_what_they_are_without_us() -> None:
    """Our processor adds nothing and holds nothing."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("request") as span:
        span.set_attribute("a", 1)
    (exported,) = exporter.get_finished_spans()
    assert (exported.name, dict(exported.attributes or {}), exported.events, exported.links) == (
        "request",
        {"a": 1},
        (),
        (),
    )
    exporter.clear()
    del exported
    assert sys.getrefcount(span) == 2
