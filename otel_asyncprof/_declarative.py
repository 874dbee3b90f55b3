"""What a declarative configuration file says of this instrumentation."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from . import _otlp_options

_logger = logging.getLogger(__name__)

# How OpenTelemetry's configuration schema names the exporters of any signal.
_EXPORTERS = {"otlp_http": "otlp_proto_http", "otlp_grpc": "otlp_proto_grpc", "otlp_file/development": "file"}
# Where it has in their blocks what our options are.
BLOCK_PATHS = {
    "otlp_endpoint": "endpoint",
    "otlp_headers": "headers",
    "otlp_timeout": "timeout",
    "otlp_compression": "compression",
    "otlp_certificate": "tls.ca_file",
    "otlp_client_key": "tls.key_file",
    "otlp_client_certificate": "tls.cert_file",
    "otlp_insecure": "tls.insecure",
    "file": "output_stream",
}
_OPTIONS = {path: option for option, path in BLOCK_PATHS.items()}

OTEL_CONFIG_FILE = "OTEL_CONFIG_FILE"
NAME = "asyncprof"


def options_of_file(environ: Mapping[str, str] = os.environ) -> Mapping[str, Any]:
    """The options under ``instrumentation/development: python: asyncprof:``, ``enabled`` included; none without a file.

    OpenTelemetry reads the file too and starts what it lists. What it finds there as ``enabled: false`` it passes over,
    but opentelemetry-instrument then starts every instrumentation that is installed, as if nothing had been said.
    """
    path = environ.get(OTEL_CONFIG_FILE, "").strip()
    if not path:
        return {}
    try:
        from opentelemetry.configuration import load_config_file

        instrumentation = load_config_file(path).instrumentation_development
        python = instrumentation.python if instrumentation is not None else None
        return dict((python or {}).get(NAME) or {})
    except Exception as error:  # OpenTelemetry, which needs the file for everything, says what is wrong with it
        _logger.debug("%s could not be read: %s", OTEL_CONFIG_FILE, type(error).__name__)
        return {}


def without_blocks(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with ``exporter: {otlp_http: {…}}``, a block as for any other signal, spread out to our own names.

    What the block holds that is no setting of ours keeps its path as its name, which is then warned about.
    """
    block = options.get("exporter")
    if not isinstance(block, Mapping):
        return dict(options)
    if len(block) != 1:  # its values may hold secrets: what is told of it are the names
        return {**options, "exporter": ", ".join(map(str, block))}
    ((kind, settings),) = block.items()
    spread = {**options, "exporter": _EXPORTERS.get(kind, kind)}
    if settings is None:
        return spread
    path = f"exporter.{kind}"
    return spread | (_settings(path, settings) if isinstance(settings, Mapping) else {path: settings})


def _settings(path: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    spread: dict[str, Any] = {}
    for name, value in settings.items():
        match name:
            case _ if value is None or (name == "encoding" and value == "protobuf"):
                pass
            case "tls" if isinstance(value, Mapping):
                files = {f"tls.{key}": file for key, file in value.items() if file is not None}
                spread |= {_OPTIONS.get(key, f"{path}.{key}"): file for key, file in files.items()}
            case "headers" | "headers_list":
                spread["otlp_headers"] = _merged_headers(settings)
            case "timeout":
                spread["otlp_timeout"] = f"{value}ms"
            case "output_stream":
                spread["file"] = str(value).removeprefix("file://")
            case _:
                spread[_OPTIONS.get(name, f"{path}.{name}")] = value
    return spread


def _merged_headers(settings: Mapping[str, Any]) -> object:
    listed, pairs = settings.get("headers_list"), settings.get("headers")
    if not listed or not pairs:
        return listed or pairs
    try:
        return _otlp_options.headers(listed) | _otlp_options.headers(pairs)
    except ValueError:
        return (None,)  # refused where all options are, and there without its text
