"""The profiler: what is started in which order, and how it ends."""

import atexit
import dataclasses
import logging
import os
import platform
import sys
import threading
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from opentelemetry import trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from . import _metrics
from ._config import ProfilerConfig
from ._version import __version__
from .errors import AsyncProfError, ProfilerUnavailable
from .export._base import ProfileExporter
from .export._periodic import PeriodicExport
from .export._resource import ResourceReader
from .export._sdk_transport import suppress_instrumentation
from .export.factory import make_exporter

# An extension that cannot be built or loaded is a reason not to profile, never a reason to stop the application.
try:
    import otel_asyncprof._native as _native

    from . import _anchors, _runtime_context, _self_check, span_processor

    _import_error: ImportError | None = None
except ImportError as error:
    _import_error = error

if TYPE_CHECKING:
    from ._metrics import ProfilerStats

_logger = logging.getLogger(__name__)

SUPPORTED_VERSIONS = ((3, 11), (3, 12), (3, 13))
EXIT_TIMEOUT_MILLIS = 5_000.0

# What to do about a refusal.
_SWITCH_OFF = "OTEL_ASYNCPROF_ENABLED=false switches it off"
_REPORT = "a newer otel-asyncprof may know it, else please report this line"

# Reentrant: a signal handler that stops the profiler may interrupt start() or stop() in the same thread.
_lifecycle = threading.RLock()
_active: "weakref.ref[Profiler] | None" = None
_fork_handler_registered = False


@dataclass(frozen=True)
class ProfilerStatus:
    """What the profiler is doing and what became of the profiles."""

    running: bool
    exported_intervals: int
    failed_intervals: int
    exporter: str | None
    last_error: str
    stats: "ProfilerStats | None"


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
        self._periodic: PeriodicExport | None = None
        self._lost_before: _metrics.Lost | None = None
        self._anchors: dict[str, int] = {}
        self._features = 0
        self._starting = False
        self._tasks_per_tick = 0  # no limit but the budget; for tests
        self._shut_down = False

    # Lifecycle

    def start(self) -> bool:
        """Starts profiling; false, with one line in the log that says why, when it cannot be. Never raises."""
        if not self.config.enabled or (self.config.exporter == "none" and self._given_exporter is None):
            _logger.debug("otel_asyncprof is switched off")
            return False
        with _lifecycle:
            if self._periodic is not None:
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
        global _active
        with _lifecycle:
            if self._shut_down:
                raise ProfilerUnavailable("this profiler was shut down")
            if self._starting or _another_is_active():
                raise ProfilerUnavailable("another profiler is already running in this process")
            if reason := unsupported_reason():
                raise ProfilerUnavailable(reason)
            if _import_error is not None:
                raise ProfilerUnavailable(
                    f"its extension cannot be loaded ({_import_error}); install otel-asyncprof anew, with the pip of "
                    "this interpreter"
                )
            self._starting = True
            try:
                self._start_steps()
            except AsyncProfError as error:
                raise ProfilerUnavailable(str(error)) from error
            except Exception as error:
                raise ProfilerUnavailable(f"{type(error).__name__}: {error}") from error
            finally:
                self._starting = False
            _active = weakref.ref(self)
            _register_fork_handler()
            atexit.register(self._at_exit)
            if self._shut_down:  # by a signal handler that interrupted the steps
                self._stop(EXIT_TIMEOUT_MILLIS, keep_given_exporter=False)
                raise ProfilerUnavailable("this profiler was shut down")

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
        with _lifecycle:
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
        return self._periodic is not None

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
        # Each step is undone when a later one fails.
        with ExitStack() as undo:
            self._anchors = _anchors.collect()
            self._features = _check_interpreter(self._anchors)
            self._exporter = self._given_exporter or make_exporter(self.config)
            if self._given_exporter is None:
                undo.callback(self._exporter.shutdown)
            _runtime_context.install()
            undo.callback(_runtime_context.uninstall)
            span_processor.ensure_registered(self._provider())
            # Now, not at the first export: that may be at exit, when modules that need threads cannot be imported.
            self._resource_reader.read(self._provider())
            self._start_sampler()
            undo.callback(_native.stop)
            self._start_export_thread()
            span_processor.watch(self.config)
            undo.pop_all()
            _metrics.begin(self._health, self._meter_provider)

    def _start_sampler(self) -> None:
        config = self.config
        assert self._exporter is not None
        self._lost_before = _metrics.Lost.until_now(_native.stats(), self._exporter)
        _native.start(
            rate=config.rate,
            max_frames=config.max_frames,
            link_local_root=config.link == "local_root",
            link_unsampled=config.link_unsampled,
            loop_frames=config.loop_frames,
            timeline=config.timeline,
            attributes=_attribute_flags(config.sample_attributes),
            features=self._features,
            anchors=self._anchors,
            asyncio_directory=_anchors.asyncio_directory(),
            cpu_budget=config.cpu_budget,
            no_signal_handlers=False,
            tasks_per_tick=self._tasks_per_tick,
        )

    def _start_export_thread(self) -> None:
        assert self._exporter is not None
        periodic = PeriodicExport(
            self._collect, self._exporter, self.config.interval, self._prepare_thread, self._settle
        )
        periodic.start()
        self._periodic = periodic

    def _stop(self, timeout_millis: float, *, keep_given_exporter: bool) -> bool:
        global _active
        with _lifecycle:
            periodic, exporter = self._periodic, self._exporter
            if periodic is None or exporter is None:
                return True
            self._periodic = None
            ends_exporter = not (keep_given_exporter and exporter is self._given_exporter)
            _native.stop()
            if ends_exporter:
                exporter.finish_soon()
            complete = periodic.stop(timeout_millis / 1000)
            if not periodic.has_ended:
                _logger.warning("the last profile could not be exported (%.1f s were allowed)", timeout_millis / 1000)
            if ends_exporter:
                exporter.shutdown()
            _metrics.end(self._health_of(periodic, exporter))
            span_processor.watch(None)
            _runtime_context.uninstall()
            self._exporter = None
            _active = None
            atexit.unregister(self._at_exit)
            return complete

    def _at_exit(self) -> None:
        self.shutdown(EXIT_TIMEOUT_MILLIS)

    def _provider(self) -> TracerProvider:
        return self._tracer_provider or trace.get_tracer_provider()

    def _prepare_thread(self) -> None:
        _native.ignore_thread()
        suppress_instrumentation()
        self._resource_reader.read(self._provider())  # in the child of a fork, where it is read anew

    def _settle(self) -> bool:
        """Does what could not be done at the start: providers are set, contexts reachable later. True when done."""
        registered = span_processor.ensure_registered(self._provider())
        return _runtime_context.retry_backfill() == 0 and registered

    def _collect(self) -> list[bytes]:
        resource, schema_url = self._resource_reader.read(self._provider())
        return _native.collect(resource=resource, resource_schema_url=schema_url, scope_version=__version__)["requests"]

    def _health(self) -> _metrics.Health | None:
        """For whoever collects metrics, in any thread; takes no lock."""
        periodic, exporter = self._periodic, self._exporter
        return self._health_of(periodic, exporter) if periodic is not None and exporter is not None else None

    def _health_of(self, periodic: PeriodicExport, exporter: ProfileExporter) -> _metrics.Health:
        assert self._lost_before is not None
        return _metrics.Health.of_run(_native.stats(), periodic, exporter, self._lost_before)

    def after_fork_in_child(self) -> None:
        """Starts anew in the child of a fork, where neither thread exists and threads of the parent may hold locks."""
        exporter = self._exporter
        if self._periodic is None or exporter is None:
            return
        self._periodic = None
        self._resource_reader = ResourceReader()
        _metrics.after_fork_in_child()
        try:
            exporter.after_fork()
            self._start_sampler()
            self._start_export_thread()
        except Exception as error:
            _native.stop()
            _logger.warning("otel_asyncprof does not profile this child process: %s", type(error).__name__)


def _another_is_active() -> bool:
    return _active is not None and _active() is not None


def unsupported_reason() -> str | None:
    """Why this interpreter or platform cannot be profiled; None when it can."""
    if platform.python_implementation() != "CPython":
        return f"it works on CPython only, this is {platform.python_implementation()}; {_SWITCH_OFF}"
    if sys.version_info[:2] not in SUPPORTED_VERSIONS:
        known = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED_VERSIONS)
        return f"CPython {platform.python_version()} is not supported; use one that is ({known})"
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return f"it works on 64-bit Linux only, this is {sys.platform} {platform.machine()}; {_SWITCH_OFF}"
    # Not from sysconfig: its data are missing in minimal installations and bundled applications.
    if "t" in sys.abiflags:
        return "the free-threaded build of CPython is not supported; use the default build"
    return None


def _check_interpreter(anchors: dict[str, int]) -> int:
    """Returns the features that may be trusted; without threads there is nothing to profile."""
    failed = {feature: reason for feature, reason in _self_check.run(anchors).items() if reason}
    version = platform.python_version()
    if "threads" in failed:
        raise ProfilerUnavailable(
            f"the memory of CPython {version} is not laid out as expected: {failed['threads']}; {_REPORT}"
        )
    if failed:
        what = "; ".join(f"no {feature}: {reason}" for feature, reason in failed.items())
        _logger.warning("otel_asyncprof on CPython %s goes on with less: %s; %s", version, what, _REPORT)
    features = {"tasks": _native.FEATURE_TASKS, "awaiters": _native.FEATURE_AWAITERS, "spans": _native.FEATURE_SPANS}
    return sum(flag for feature, flag in features.items() if feature not in failed)


def _attribute_flags(names: tuple[str, ...]) -> int:
    flags = {
        "thread.name": _native.ATTRIBUTE_THREAD_NAME,
        "asyncprof.state": _native.ATTRIBUTE_STATE,
        "thread.id": _native.ATTRIBUTE_THREAD_ID,
        "asyncio.task.name": _native.ATTRIBUTE_TASK_NAME,
        "asyncprof.local_root.name": _native.ATTRIBUTE_LOCAL_ROOT_NAME,
    }
    return sum(flags[name] for name in names)


def _register_fork_handler() -> None:
    global _fork_handler_registered
    if not _fork_handler_registered:
        _fork_handler_registered = True
        os.register_at_fork(after_in_child=_after_fork_in_child)


def _after_fork_in_child() -> None:
    global _lifecycle
    _lifecycle = threading.RLock()
    if _import_error is None:
        _native.after_fork_in_child()
    profiler = _active() if _active is not None else None
    if profiler is not None:
        profiler.after_fork_in_child()
