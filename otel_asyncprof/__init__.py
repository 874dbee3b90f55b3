"""An OpenTelemetry sampling profiler for asyncio: which code and which request a slow span belongs to."""

from ._config import ProfilerConfig
from ._metrics import ProfilerStatus
from ._profiler import Profiler
from ._version import __version__
from .errors import AsyncProfError, ConfigurationError, ExporterUnavailable, ProfilerUnavailable

__all__ = [
    "AsyncProfError",
    "ConfigurationError",
    "ExporterUnavailable",
    "Profiler",
    "ProfilerConfig",
    "ProfilerStatus",
    "ProfilerUnavailable",
    "__version__",
]
