"""The profiler: what is started in which order, and how it ends."""

import dataclasses
import logging
import os
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from opentelemetry import trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from . import _collection, _fork, _metrics, _platform
from ._config import ProfilerConfig
from ._metrics import ProfilerStatus
from ._version import __version__
from .errors import ProfilerUnavailable, reason_of
from .export._base import ProfileExporter
from .export._periodic import EXIT_TIMEOUT, PeriodicExport
from .export._resource import ResourceReader
from .export._sdk_transport import suppress_instrumentation
from .export.factory import make_exporter

# An extension that cannot be built or loaded is a reason not to profile, never a reason to stop the application.
try:
    import otel_asyncprof._native as _native

    from . import (
        _anchors,
        _copy_method,
        _exit,
        _features,
        _libraries,
        _runtime_context,
        _self_check,
        _thread_context,
        span_processor,
    )

    _import_error: ImportError | None = None
except ImportError as error:
    _import_error = error

if TYPE_CHECKING:
    from ._metrics import ProfilerStats

_logger = logging.getLogger(__name__)

EXIT_TIMEOUT_MILLIS = EXIT_TIMEOUT * 1000

# Reentrant: a signal handler that stops the profiler may interrupt start() or stop() in the same thread.
_lifecycle = threading.RLock()
_active: "weakref.ref[Profiler] | None" = None  # from the beginning of its start to the end of its stop


class Profiler:
    """Samples this process and exports what it sees; at most one runs in a process.

    Options are those of ProfilerConfig; without a config, what is not given is taken from the environment. The exporter
    is an object, or the name of one as in the configuration.
    """

    def __init__(
        self,
        config: ProfilerConfig | None = None,
        *,
        exporter: ProfileExporter | str | None = None,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        **options: Any,
    ) -> None:
        if isinstance(exporter, str):
            options["exporter"], exporter = exporter, None
        if config is None:
            self.config = ProfilerConfig.from_env(**options)
        else:
            self.config = dataclasses.replace(config, **options)
        self._given_exporter = exporter
        self._exporter: ProfileExporter | None = None
        self._tracer_provider = tracer_provider
        self._meter_provider = meter_provider
        self._resource_reader = ResourceReader()
        self._copy_report: _copy_method.CopyMethodReport
        self._periodic: PeriodicExport | None = None
        self._lost_before: _metrics.Lost | None = None
        self._anchors: dict[str, int] = {}
        self._features = 0
        self._busy = threading.Lock()  # held while start() or stop() is at work
        self._stop_asked = self._ending = False
        self._tasks_per_tick = 0  # no limit but the budget; for tests
        self._shut_down = False

    # Lifecycle

    def start(self) -> bool:
        """Starts profiling; false, with one line in the log that says why, when it cannot be. Never raises."""
        if not self.config.enabled or (self.config.exporter == "none" and self._given_exporter is None):
            _logger.debug("otel_asyncprof is switched off")
            return False
        with _fork.unless_at_the_end(_lifecycle):
            if self.is_running:
                _logger.warning("otel_asyncprof is already running; this start does nothing")
                return True
            if _another_is_active():
                _logger.warning("otel_asyncprof is already running in this process; this start does nothing")
                return False
            try:
                self.start_or_raise()
            except ProfilerUnavailable as refusal:
                _logger.warning("otel_asyncprof does not profile this process: %s", refusal)
                return False
            return True

    def start_or_raise(self) -> None:
        """Starts profiling, or raises ProfilerUnavailable with the reason and leaves nothing behind."""
        with _fork.unless_at_the_end(_lifecycle):
            if self._shut_down:
                raise ProfilerUnavailable("this profiler was shut down")
            if self._busy.locked() or _another_is_active():
                raise ProfilerUnavailable("another profiler is already running in this process")
            if reason := _platform.unsupported_reason():
                raise ProfilerUnavailable(reason)
            if _import_error is not None or not _native.is_main_interpreter():
                raise ProfilerUnavailable(_platform.unloaded_reason(_import_error))
            with self._busy:
                pid = os.getpid()
                self._start_steps()
                if os.getpid() != pid:  # a signal handler has forked meanwhile, and this is the child
                    self._undo()
                    self._start_steps()
            if self._stop_asked or self._shut_down:  # by a signal handler that interrupted the steps
                self._stop(EXIT_TIMEOUT_MILLIS, keep_given_exporter=not self._shut_down)
                raise ProfilerUnavailable("this profiler was shut down" if self._shut_down else "it was stopped again")

    def stop(self, timeout_millis: float = EXIT_TIMEOUT_MILLIS) -> bool:
        """Stops profiling and has the rest exported; true when that was done in time. Harmless when nothing runs."""
        return self._stop(timeout_millis, keep_given_exporter=True)

    def force_flush(self, timeout_millis: float = 30_000) -> bool:
        """Has everything seen until now exported; false when that fails or takes longer."""
        periodic = self._periodic
        if periodic is None:
            return True
        return periodic.force_flush(timeout_millis / 1000)

    def shutdown(self, timeout_millis: float = EXIT_TIMEOUT_MILLIS) -> bool:
        """Like stop(), for good: the exporter is shut down too. May be called twice."""
        result = self._stop(timeout_millis, keep_given_exporter=False)
        with _fork.unless_at_the_end(_lifecycle):
            if not self._shut_down:
                self._shut_down = True
                if self._given_exporter is not None:
                    self._given_exporter.shutdown(timeout_millis)
        return result

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()

    # What it is doing

    @property
    def is_running(self) -> bool:
        """Whether this profiler samples the process now."""
        return self._periodic is not None and not self._ending

    def stats(self) -> "ProfilerStats | None":
        """The counters of the sampler since the start, with rate and share; None when there is no extension."""
        return _metrics.with_derived(_native.stats()) if _import_error is None else None

    def status(self) -> ProfilerStatus:
        """A summary for people."""
        periodic, exporter = self._periodic, self._exporter
        return ProfilerStatus(
            running=periodic is not None,
            exported_intervals=periodic.exported_intervals if periodic else 0,
            failed_intervals=periodic.failed_intervals if periodic else 0,
            exporter=repr(exporter) if exporter else None,
            last_error=(exporter.last_error if exporter else "") or (periodic.last_error if periodic else ""),
            stats=self.stats(),
        )

    # The steps

    def _start_steps(self) -> None:
        global _active
        self._stop_asked, _active = False, weakref.ref(self)
        try:
            _fork.register(_after_fork_in_child)
            self._anchors = _anchors.collect()
            with _copy_method.readable_memory():
                self._features = _features.trusted(_self_check.run(self._anchors))
                _libraries.learn()
                self._exporter = self._given_exporter or make_exporter(self.config)
                _runtime_context.install()
            span_processor.ensure_registered(self._provider())
            # Now, not at the first export: that may be at exit, when modules that need threads cannot be imported.
            resource, _ = self._resource_reader.read(self._provider())
            if self.config.thread_context:
                _thread_context.begin(resource)
            _exit.call_at_exit(_shut_down_at_exit)
            _fork.end_with_multiprocessing(_shut_down_at_exit)
            self._start_threads()
            span_processor.watch(self.config)
            _metrics.begin(self._health, self._meter_provider)
        except BaseException as error:
            self._undo()
            if not isinstance(error, Exception):  # of a signal handler
                raise
            raise ProfilerUnavailable(reason_of(error)) from error

    def _start_threads(self) -> None:
        """The sampler last: nothing of this is to be seen in the profile."""
        assert self._exporter is not None
        self._lost_before = _metrics.Lost.until_now(_native.stats(), self._exporter)
        self._copy_report = _copy_method.CopyMethodReport()
        self._start_export_thread()
        self._start_sampler()

    def _start_sampler(self) -> None:
        config = self.config
        _native.start(
            rate=config.rate,
            max_frames=config.max_frames,
            link_local_root=config.link == "local_root",
            link_unsampled=config.link_unsampled,
            loop_frames=config.loop_frames,
            timeline=config.timeline,
            attributes=_features.attribute_flags(config.sample_attributes),
            features=self._features,
            anchors=self._anchors,
            asyncio_directory=_anchors.asyncio_directory(),
            cpu_budget=config.cpu_budget,
            no_signal_handlers=False,
            tasks_per_tick=self._tasks_per_tick,
        )
        self._copy_report.update(_native.stats()["copy_method"], begins=True)

    def _start_export_thread(self) -> None:
        assert self._exporter is not None
        watch = _exit.ExitWatch(self.config.exit_signals, self._hurry)
        collect = _collection.begin(self._collect).take
        self._periodic = PeriodicExport(
            collect, self._exporter, self.config.interval, self._prepare_thread, self._settle, watch
        )
        _native.ignore_thread(self._periodic.start())
        watch.take_signals()

    def _stop(self, timeout_millis: float, *, keep_given_exporter: bool) -> bool:
        with _fork.unless_at_the_end(_lifecycle):
            if self._busy.locked():  # by the very steps that the caller, a signal handler, has interrupted
                self._stop_asked = True
                return True
            with self._busy:
                return self._stop_steps(timeout_millis, keep_given_exporter)

    def _stop_steps(self, timeout_millis: float, keep_given_exporter: bool) -> bool:
        # A signal handler may raise out of any step: the next stop, at the latest the one at exit, does the rest.
        periodic, exporter = self._periodic, self._exporter
        if periodic is None or exporter is None:
            self.undo_what_is_left()
            return True
        self._ending = True
        _native.stop()
        ends_exporter = not (keep_given_exporter and exporter is self._given_exporter)
        if ends_exporter:
            exporter.finish_soon()
        complete = periodic.stop(timeout_millis / 1000)
        if not periodic.has_ended and not exporter.last_error:  # else the exporter has said what is wrong
            _exit.say_too_late(timeout_millis / 1000)
        if ends_exporter:
            exporter.shutdown()
        _metrics.end(self._health_of(periodic, exporter))
        self._put_back()
        return complete

    def undo_what_is_left(self) -> bool:
        """Of a start or a stop out of which a signal handler has raised; false when there is more than that."""
        if self.is_running:
            return False
        if _active is not None and _active() is self:
            self._undo()
        return True

    @property
    def is_busy(self) -> bool:
        """Whether a start or a stop is under way."""
        return self._busy.locked()

    def _undo(self) -> None:
        _native.stop()
        if self._periodic is not None:
            self._periodic.stop(0)
        if self._exporter is not None and self._exporter is not self._given_exporter:
            self._exporter.shutdown()
        self._put_back()

    def _put_back(self) -> None:
        global _active
        _exit.give_signals_back()
        span_processor.watch(None)
        _thread_context.end()
        _runtime_context.uninstall()
        self._periodic = self._exporter = None
        self._ending = False
        _active = None

    def _hurry(self) -> None:
        """In the export thread, before the last export of a process that dies by a signal."""
        _native.stop()
        if self._exporter is not None:
            self._exporter.finish_soon()

    def _provider(self) -> TracerProvider:
        return self._tracer_provider or trace.get_tracer_provider()

    def _prepare_thread(self) -> None:
        suppress_instrumentation()
        self._resource_reader.read(self._provider())  # in the child of a fork, where it is read anew

    def _settle(self) -> bool:
        """Does what could not be done at the start: providers are set, contexts reachable later. True when done."""
        registered = span_processor.ensure_registered(self._provider())
        return _runtime_context.retry_backfill() == 0 and registered

    def _collect(self) -> list[bytes]:
        _libraries.learn(thoroughly=True)
        self._copy_report.update(_native.stats()["copy_method"])
        resource, schema_url = self._resource_reader.read(self._provider())
        _thread_context.update(resource)
        return _native.collect(resource=resource, resource_schema_url=schema_url, scope_version=__version__)["requests"]

    def _health(self) -> _metrics.Health | None:
        """For whoever collects metrics, in any thread; takes no lock."""
        periodic, exporter = self._periodic, self._exporter
        return self._health_of(periodic, exporter) if periodic is not None and exporter is not None else None

    def _health_of(self, periodic: PeriodicExport, exporter: ProfileExporter) -> _metrics.Health:
        assert self._lost_before is not None
        return _metrics.Health.of_run(_native.stats(), periodic, exporter, self._lost_before)

    def after_fork_in_child(self, interrupted: bool = False) -> None:
        """Starts anew in the child of a fork; or undoes a start or a stop whose thread does not exist here."""
        exporter = self._exporter
        under_way = self._busy.locked()
        if interrupted:
            self._busy = threading.Lock()
        if under_way or self._ending or self._periodic is None or exporter is None:
            if interrupted:
                self._forget_run()
            return
        self._periodic = None
        self._resource_reader = ResourceReader()
        _metrics.after_fork_in_child()
        try:
            _thread_context.after_fork_in_child(self._resource_reader.read(self._provider())[0])
            exporter.after_fork()
            self._start_threads()
            _fork.end_with_multiprocessing(_shut_down_at_exit, forked_just_now=True)
        except Exception as error:
            self._forget_run()
            _logger.warning("otel_asyncprof does not profile this child process: %s", reason_of(error))

    def _forget_run(self) -> None:
        _native.stop()
        self._put_back()


def _another_is_active() -> bool:
    profiler = _active() if _active is not None else None
    return profiler is not None and (profiler.is_busy or not profiler.undo_what_is_left())


def _shut_down_at_exit() -> None:
    profiler = _active() if _active is not None else None
    if profiler is not None:
        try:
            profiler.shutdown(EXIT_TIMEOUT_MILLIS)
        except (KeyboardInterrupt, SystemExit):  # of a signal handler: somebody does not want to wait
            _native.stop()


def _after_fork_in_child() -> None:
    global _lifecycle
    _native.after_fork_in_child()
    before, _lifecycle = _lifecycle, _fork.lock_in_child(_lifecycle)
    if _active is not None and (profiler := _active()) is not None:
        profiler.after_fork_in_child(interrupted=_lifecycle is not before)
