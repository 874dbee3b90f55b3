"""The profiler as an instrumentation: started by opentelemetry-instrument, by declarative configuration or in code."""

import logging
from collections.abc import Collection
from typing import Any

try:
    from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]
except ImportError as error:
    raise ImportError(
        "AsyncProfInstrumentor needs opentelemetry-instrumentation: pip install 'otel-asyncprof[instrument]'"
    ) from error

from ._config import ProfilerConfig
from ._declarative import options_of_file, without_blocks
from ._profiler import Profiler
from .export import ProfileExporter

_logger = logging.getLogger(__name__)

# What callers of instrument() pass to every instrumentor.
_COMMON_ARGUMENTS = {"logger_provider"}


class AsyncProfInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """instrument() takes ProfilerConfig's options and both providers; without them the environment decides."""

    # No attribute `configuration` with a dataclass: OpenTelemetry would fill in its defaults, which hide the variables,
    # and answer a bad option with a traceback. Without it the options of a configuration file come as they are.
    _profiler: Profiler | None = None

    def instrumentation_dependencies(self) -> Collection[str]:
        return ()

    @property
    def profiler(self) -> Profiler | None:
        """The profiler of the last instrument(); None before it and after uninstrument()."""
        return self._profiler

    def _instrument(self, **kwargs: Any) -> None:
        # An exception here would keep other instrumentations from being loaded.
        try:
            providers = {name: kwargs.pop(name, None) for name in ("tracer_provider", "meter_provider")}
            options = {name: value for name, value in kwargs.items() if name not in _COMMON_ARGUMENTS}
            options = without_blocks(options or options_of_file())
            exporter = options.pop("exporter") if isinstance(options.get("exporter"), ProfileExporter) else None
            self._profiler = Profiler(ProfilerConfig.from_options(options), exporter=exporter, **providers)
            self._profiler.start()
        except Exception as error:
            _logger.warning("otel_asyncprof does not profile this process: %s", type(error).__name__, exc_info=True)

    def _uninstrument(self, **kwargs: Any) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.shutdown()
