"""In a program that `otel-asyncprof run` has started: records its profiles and its spans."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from .. import _native, span_processor
from .._config import OPTIONS
from .._profiler import Profiler
from ..errors import AsyncProfError
from ..export._base import ProfileExporter, ProfileExportResult
from ..export.factory import make_exporter
from .settings import RunSettings, configuration
from .spool import Spool

_logger = logging.getLogger(__name__)

MAX_WAITING_SPANS = 50_000  # between two exports
_DISABLED = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"


class SpanRecorder(SpanProcessor):
    """Keeps the spans that have ended until they are written."""

    def __init__(self) -> None:
        self._ended: deque[ReadableSpan] = deque()  # appended to and taken from by several threads
        self._is_closed = False
        self._n_lost = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Does nothing: a span is recorded when it ends."""

    def on_end(self, span: ReadableSpan) -> None:
        """Keeps a span that is sampled."""
        context = span.get_span_context()
        if self._is_closed or context is None or not context.trace_flags.sampled:
            return
        if len(self._ended) >= MAX_WAITING_SPANS:
            self._n_lost += 1
            return
        self._ended.append(span)

    def take(self) -> list[bytes]:
        """The spans since the last time, as TracesData."""
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

        ended = [self._ended.popleft() for _ in range(len(self._ended))]
        return [encode_spans(ended).SerializeToString()] if ended else []

    def forget(self) -> None:
        """In the child of a fork: these spans are the parent's."""
        self._ended.clear()

    def close(self) -> None:
        """What ends from now on is not wanted."""
        self._is_closed = True
        self._ended.clear()
        if self._n_lost:
            _logger.warning("%d spans were not recorded: too many have ended between two exports", self._n_lost)
            self._n_lost = 0

    def shutdown(self) -> None:
        """Does nothing: the profiler's end writes what is left."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Returns true: nothing is sent."""
        return True


class RecordingExporter(ProfileExporter):
    """Writes profiles and spans to the spool, and hands the profiles on when they are to be sent, too."""

    def __init__(self, spool: Spool, spans: SpanRecorder, onward: ProfileExporter | None, running_only: bool) -> None:
        self._spool = spool
        self._spans = spans
        self._onward = onward
        self._running_only = running_only
        self.forgets = False  # in a process that is not to be recorded

    def export(self, requests: Sequence[bytes]) -> ProfileExportResult:
        if self.forgets:
            return ProfileExportResult.SUCCESS
        if self._running_only:
            from ..formats.subset import only_running

            requests = only_running(requests)
        try:
            self._write(requests)
        except OSError as error:
            return self._tell_loss(
                _logger, "a part of the profile", f"the recording cannot be written: {error.strerror}"
            )
        self.last_error = ""
        if self._onward is None or not requests:
            return ProfileExportResult.SUCCESS
        result = self._onward.export(requests)
        self.last_error = self._onward.last_error
        return result

    def _write(self, requests: Sequence[bytes]) -> None:
        if self.forgets:
            return
        if requests:
            self._spool.add_profiles(list(requests))
        if messages := self._spans.take():
            self._spool.add_traces(messages)

    def finish_soon(self) -> None:
        if self._onward is not None:
            self._onward.finish_soon()

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        try:
            self._write([])
        except OSError:
            _logger.warning("the last spans could not be recorded")
        self._spans.close()
        if self._onward is not None:
            self._onward.shutdown(timeout_millis)

    def after_fork(self) -> None:
        self._spans.forget()
        if self._onward is not None:
            self._onward.after_fork()


def begin(text: str) -> None:
    """Starts to record this process, as the settings in the text say; what cannot be done becomes a note."""
    settings = RunSettings.from_text(text)
    spool = Spool(settings.folder)
    if not settings.subprocesses:
        settings.leave_environment()
    spans = SpanRecorder()
    span_processor.accompany(spans)
    if settings.instrument:
        _instrument(settings)
    try:
        config = configuration(os.environ, running_only=settings.running_only, otlp=settings.otlp)
        if not config.enabled:
            spool.add_note("OTEL_ASYNCPROF_ENABLED or OTEL_SDK_DISABLED switches the profiler off")
            return
        onward = make_exporter(config) if settings.otlp else None
        exporter = RecordingExporter(spool, spans, onward, settings.running_only)
        profiler = Profiler(config, exporter=exporter)
        profiler.start_or_raise()
    except AsyncProfError as refusal:
        spool.add_note(str(refusal))
        return
    with suppress(OSError):  # which the first export will say
        spool.begin()
    _Limits(profiler, exporter, settings, spans).begin()


class _Limits:
    """Ends the recording after its duration, and in processes that are not to be recorded."""

    def __init__(
        self, profiler: Profiler, exporter: RecordingExporter, settings: RunSettings, spans: SpanRecorder
    ) -> None:
        self._profiler = profiler
        self._exporter = exporter
        self._spans = spans
        self._settings = settings
        self._deadline = time.monotonic() + settings.duration

    def begin(self) -> None:
        if self._settings.duration:
            self._start_clock()
        os.register_at_fork(after_in_child=self._in_child)

    def _start_clock(self) -> None:
        threading.Thread(target=self._wait, name="otel-asyncprof-duration", daemon=True).start()

    def _wait(self) -> None:
        _native.ignore_thread(threading.get_native_id())
        while (remaining := self._deadline - time.monotonic()) > 0:
            time.sleep(remaining)
        self._end()

    def _end(self) -> None:
        self._profiler.shutdown()
        span_processor.accompany(None)

    def _in_child(self) -> None:
        self._spans.forget()
        if not self._settings.subprocesses:
            self._exporter.forgets = True
            self._end()
        elif self._settings.duration:
            self._start_clock()


def _instrument(settings: RunSettings) -> None:
    """What opentelemetry-instrument does, but for the exporters that nobody asked for."""
    variables = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("METRICS", "LOGS")}
    variables["OTEL_TRACES_EXPORTER"] = "otlp" if settings.otlp else "none"
    variables |= {name: os.environ[name] for name in variables if name in os.environ}
    # It is started here, and neither there nor by a configuration file.
    variables[_DISABLED] = ",".join(filter(None, [os.environ.get(_DISABLED), "asyncprof"]))
    variables[OPTIONS["enabled"].variable] = "false"
    with _variables(variables):
        if find_spec("opentelemetry.instrumentation") is not None:
            from opentelemetry.instrumentation.auto_instrumentation import initialize

            initialize()
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):  # there is no distro that sets one
            trace.set_tracer_provider(_provider(settings))


def _provider(settings: RunSettings) -> TracerProvider:
    provider = TracerProvider()
    if settings.otlp and os.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp":
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider.add_span_processor(BatchSpanProcessor(_span_exporter()))
    return provider


def _span_exporter() -> Any:
    if os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")) == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc

        return OverGrpc()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


@contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    """The environment with other values for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
