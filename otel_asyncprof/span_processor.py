"""Tells the sampler which spans have ended, and slow spans who started them."""

from __future__ import annotations

import logging
import weakref
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from otel_asyncprof import _native
from otel_asyncprof._callers import SlowSpans
from otel_asyncprof._config import ProfilerConfig

_logger = logging.getLogger(__name__)


# While a profiler runs.
_slow_spans: SlowSpans | None = None

# What is added beside ours: somebody who wants to see every span, whoever provides it.
_companion: SpanProcessor | None = None


def accompany(processor: SpanProcessor | None) -> None:
    """Has a processor see all spans of the providers that ours is added to from now on; None: no further one."""
    global _companion
    _companion = processor


def watch(config: ProfilerConfig | None) -> None:
    """Writes into spans that start from now on what the configuration wants; None: nothing."""
    global _slow_spans
    _slow_spans = None if config is None else SlowSpans(config)


class ProfilingSpanProcessor(SpanProcessor):
    """Marks the cell of each span that ends, so that no later sample is linked to it. Holds no span."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Takes note of who starts the span; a cell it gets only when it becomes current, and most never do."""
        slow_spans = _slow_spans
        if slow_spans is None:
            return
        try:
            slow_spans.span_started(span)
        except Exception:
            _logger.debug("the caller of a span could not be taken", exc_info=True)

    def on_end(self, span: ReadableSpan) -> None:
        """Marks the span's cell."""
        try:
            context = span.context
            if context is not None:
                _native.span_ended(context.span_id)
        except Exception:
            _logger.debug("a span that ended could not be marked", exc_info=True)

    def shutdown(self) -> None:
        """Does nothing: there is nothing to keep."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Returns true: marking is done when on_end returns."""
        return True


_registered: weakref.WeakSet[Any] = weakref.WeakSet()


def ensure_registered(provider: Any) -> bool:
    """Adds a processor to a tracer provider that has none of ours yet; whether it has one now.

    Until the application sets a provider the API gives out a proxy, which takes no processors. Cells are marked for the
    whole process, so one processor per provider serves every profiler.
    """
    return _add_once(getattr(provider, "_active_span_processor", provider))


def notice_span_processor(processor: Any) -> bool:
    """Adds ours beside the processors of a span that becomes current, whatever its provider and when that was set."""
    return _add_once(processor)


def _add_once(processors: Any) -> bool:
    # No lock, which a forked child could find held for ever: if two threads both add one, spans are marked twice.
    try:
        add_span_processor = getattr(processors, "add_span_processor", None)
        if add_span_processor is None:
            return False
        if processors not in _registered:
            _registered.add(processors)
            add_span_processor(ProfilingSpanProcessor())
            if _companion is not None:
                add_span_processor(_companion)
        return True
    except Exception:
        _logger.warning("spans that have ended will not be known: no span processor could be added", exc_info=True)
        return False
