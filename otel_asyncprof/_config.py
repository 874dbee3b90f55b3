"""ProfilerConfig: every option of the profiler, from code, from declarative configuration or from variables."""

import dataclasses
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Self

from . import _otlp_options
from . import environment_variables as variables
from ._options import Option, boolean, choice, choices, duration, integer, number, read_variable, text
from .errors import ConfigurationError

_logger = logging.getLogger(__name__)

EXPORTER_ENTRY_POINTS = "opentelemetry_profiles_exporter"
EXPORTERS = ("otlp", "otlp_proto_http", "otlp_proto_grpc", "console", "file", "none")
SAMPLE_ATTRIBUTES = ("thread.name", "asyncprof.state", "thread.id", "asyncio.task.name", "asyncprof.local_root.name")
SPAN_KINDS = ("client", "internal", "producer", "consumer", "server")


def _exporter_name(value: object) -> str:
    name = text(value)
    if name.lower() in EXPORTERS:
        return name.lower()
    if not entry_points(group=EXPORTER_ENTRY_POINTS, name=name):
        raise ValueError(value)
    return name


def _option(default: Any, option: Option) -> Any:
    return field(default=default, metadata={"option": option})


def _otlp(variable: str, parse: Callable[[object], object], allowed: str, *, secret: bool = False) -> Any:
    option = Option(variable, parse, allowed, read_by_exporter=True, secret=secret)
    return field(default=None, metadata={"option": option}, repr=not secret, hash=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerConfig:
    """The options of one profiler, named like their OTEL_ASYNCPROF_ variables, in the same units. A bad one raises."""

    enabled: bool = _option(True, Option(variables.OTEL_ASYNCPROF_ENABLED, boolean, "true, false"))
    exporter: str = _option(
        "otlp",
        Option(
            variables.OTEL_PROFILES_EXPORTER,
            _exporter_name,
            f"{', '.join(EXPORTERS)}, or an installed entry point of {EXPORTER_ENTRY_POINTS}",
        ),
    )
    rate: int = _option(100, Option(variables.OTEL_ASYNCPROF_RATE, integer(1, 1000), "1 to 1000 per second"))
    cpu_budget: float = _option(
        0.01, Option(variables.OTEL_ASYNCPROF_CPU_BUDGET, number(0.001, 1), "0.001 to 1, a share of one core")
    )
    interval: float = _option(
        10.0, Option(variables.OTEL_ASYNCPROF_INTERVAL, duration("s", 0.1, 3600), "0.1 to 3600 seconds")
    )
    max_frames: int = _option(128, Option(variables.OTEL_ASYNCPROF_MAX_FRAMES, integer(3, 512), "3 to 512"))
    link: str = _option("span", Option(variables.OTEL_ASYNCPROF_LINK, choice("span", "local_root"), "span, local_root"))
    link_unsampled: bool = _option(False, Option(variables.OTEL_ASYNCPROF_LINK_UNSAMPLED, boolean, "true, false"))
    loop_frames: bool = _option(False, Option(variables.OTEL_ASYNCPROF_LOOP_FRAMES, boolean, "true, false"))
    sample_attributes: tuple[str, ...] = _option(
        ("thread.name", "asyncprof.state"),
        Option(
            variables.OTEL_ASYNCPROF_SAMPLE_ATTRIBUTES,
            choices(*SAMPLE_ATTRIBUTES),
            f"a comma-separated list out of {', '.join(SAMPLE_ATTRIBUTES)}",
        ),
    )
    timeline: bool = _option(False, Option(variables.OTEL_ASYNCPROF_TIMELINE, boolean, "true, false"))
    slow_span_threshold: float = _option(
        100.0,
        Option(variables.OTEL_ASYNCPROF_SLOW_SPAN_THRESHOLD, duration("ms", 0, 3_600_000), "0 to 3600000 milliseconds"),
    )
    caller_kinds: tuple[str, ...] = _option(
        ("client",),
        Option(
            variables.OTEL_ASYNCPROF_CALLER_KINDS,
            choices(*SPAN_KINDS),
            f"a comma-separated list out of {', '.join(SPAN_KINDS)}",
        ),
    )
    profile_id: bool = _option(True, Option(variables.OTEL_ASYNCPROF_PROFILE_ID, boolean, "true, false"))
    file: str = _option("asyncprof.otlp", Option(variables.OTEL_ASYNCPROF_FILE, text, "a path"))
    exit_signals: bool = _option(True, Option(variables.OTEL_ASYNCPROF_EXIT_SIGNALS, boolean, "true, false"))
    thread_context: bool = _option(False, Option(variables.OTEL_ASYNCPROF_THREAD_CONTEXT, boolean, "true, false"))
    otlp_protocol: str | None = _otlp(
        variables.OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL, choice("http/protobuf", "grpc"), "http/protobuf, grpc"
    )
    otlp_endpoint: str | None = _otlp(
        variables.OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT,
        _otlp_options.endpoint,
        "a URL with http:// or https://, or for gRPC host:port",
        secret=True,
    )
    otlp_headers: Mapping[str, str] | None = _otlp(
        variables.OTEL_EXPORTER_OTLP_PROFILES_HEADERS,
        _otlp_options.headers,
        "names with values, both such as a header may have",
        secret=True,
    )
    otlp_timeout: float | None = _otlp(
        variables.OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT, duration("s", 0.001, 3600), "0.001 to 3600 seconds"
    )
    otlp_compression: str | None = _otlp(
        variables.OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION, choice("none", "gzip", "deflate"), "none, gzip, deflate"
    )
    otlp_certificate: str | None = _otlp(variables.OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE, text, "a path")
    otlp_client_key: str | None = _otlp(variables.OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY, text, "a path")
    otlp_client_certificate: str | None = _otlp(
        variables.OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE, text, "a path"
    )
    otlp_insecure: bool | None = _otlp(variables.OTEL_EXPORTER_OTLP_PROFILES_INSECURE, boolean, "true, false")

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if value is None and option.read_by_exporter:
                continue
            try:
                object.__setattr__(self, name, option.parse(value))
            except (TypeError, ValueError, OverflowError):
                raise ConfigurationError(option.refusal(name, value)) from None

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ, /, **options: Any) -> Self:
        """The options given here, else the variables, else the defaults; a bad variable gives one line in the log."""
        values = dict(options)
        for name, option in OPTIONS.items():
            if name in values or option.read_by_exporter:
                continue
            if (value := read_variable(option, environ)) is not None:
                values[name] = value
        if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            values["enabled"] = False
        return cls(**values)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Like from_env for options that nobody checked: an unknown or bad one is warned about and left out."""
        good = {}
        for name, value in options.items():
            option = OPTIONS.get(name)
            if option is None:
                _logger.warning("otel_asyncprof has no option %r (it has: %s)", name, ", ".join(OPTIONS))
                continue
            try:
                good[name] = option.parse(value)
            except (TypeError, ValueError, OverflowError):
                _logger.warning("option %s; it is left out", option.refusal(name, value))
        return cls.from_env(**good)


OPTIONS: dict[str, Option] = {item.name: item.metadata["option"] for item in dataclasses.fields(ProfilerConfig)}
