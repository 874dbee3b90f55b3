"""From the name of an exporter to the exporter."""

from importlib.metadata import entry_points
from typing import Any

from .._config import EXPORTER_ENTRY_POINTS, ProfilerConfig
from ..errors import ExporterUnavailable
from ._base import ProfileExporter
from ._otlp_settings import protocol_from_env


def otlp(config: ProfilerConfig | None = None) -> ProfileExporter:
    """The OTLP exporter for the protocol that the configuration names, else the environment."""
    protocol = config.otlp_protocol if config is not None else None
    return _otlp_over(protocol or protocol_from_env(), config)


def _otlp_over(protocol: str, config: ProfilerConfig | None) -> ProfileExporter:
    arguments: dict[str, Any] = {}
    if config is not None:
        arguments = {
            "endpoint": config.otlp_endpoint,
            "headers": config.otlp_headers,
            "timeout": config.otlp_timeout,
            "compression": config.otlp_compression,
            "certificate_file": config.otlp_certificate,
            "client_key_file": config.otlp_client_key,
            "client_certificate_file": config.otlp_client_certificate,
        }
    if protocol == "grpc":
        from . import otlp_grpc

        return otlp_grpc.OTLPProfileExporter(**arguments, insecure=config.otlp_insecure if config is not None else None)
    from . import otlp_http

    return otlp_http.OTLPProfileExporter(**arguments)


def make_exporter(config: ProfilerConfig) -> ProfileExporter:
    """The exporter that the configuration names; ExporterUnavailable when it cannot be made."""
    match config.exporter:
        case "otlp":
            return otlp(config)
        case "otlp_proto_http":
            return _otlp_over("http/protobuf", config)
        case "otlp_proto_grpc":
            return _otlp_over("grpc", config)
        case "console":
            from .console import ConsoleProfileExporter

            return ConsoleProfileExporter()
        case "file":
            from .file import FileProfileExporter

            return FileProfileExporter(config.file)
        case name:
            return _from_entry_point(name)


def _from_entry_point(name: str) -> ProfileExporter:
    for entry_point in entry_points(group=EXPORTER_ENTRY_POINTS, name=name):
        try:
            exporter = entry_point.load()()
        except Exception as error:  # anybody's code; its text may hold a secret
            raise ExporterUnavailable(f"the exporter {name!r} could not be made: {type(error).__name__}") from error
        if not isinstance(exporter, ProfileExporter):
            raise ExporterUnavailable(f"the entry point {name!r} made no ProfileExporter")
        return exporter
    raise ExporterUnavailable(f"there is no profiles exporter {name!r}")
