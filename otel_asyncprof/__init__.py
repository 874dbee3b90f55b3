"""An OpenTelemetry sampling profiler for asyncio: which code and which request a slow span belongs to."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._config import ProfilerConfig
    from ._metrics import ProfilerStatus
    from ._profiler import Profiler
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

_MODULES = {
    "ProfilerConfig": "_config",
    "Profiler": "_profiler",
    "ProfilerStatus": "_metrics",
    "load_ipython_extension": "ipython",  # for %load_ext otel_asyncprof
    "unload_ipython_extension": "ipython",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for at first use: a command that prints its help needs neither asyncio nor the SDK."""
    if name not in __all__ and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
