"""Spans, runtime contexts and what to read of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import opentelemetry.context as otel
from opentelemetry import trace
from opentelemetry.context.context import Context
from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from opentelemetry.trace.propagation import _SPAN_KEY
from reader_helpers import prepare

from otel_asyncprof import _native

SAMPLED, REMOTE, RECORDING = 1, 2, 4
RANDOM = 8  # the trace ids of the SDK are random, and it says so
NO_ID = bytes(8)

provider = TracerProvider()
tracer = provider.get_tracer("test")
STOCK: Any = otel._RUNTIME_CONTEXT


class Runtimes:
    """A stock runtime context and ours over the same variable."""

    def __init__(self, get_running_loop: Callable[[], object] = asyncio._get_running_loop) -> None:
        self.stock = ContextVarsRuntimeContext()
        self.noticed: list[Any] = []
        self.ours = _native.ContextVarsRuntimeContext(
            self.stock._current_context,
            Context,
            _SPAN_KEY,
            NonRecordingSpan,
            asyncio.tasks._current_tasks,  # type: ignore[attr-defined]
            get_running_loop,
            self.noticed.append,
        )
        if not _native.is_running():
            prepare()  # a patch release may keep the running task elsewhere than the table says

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
