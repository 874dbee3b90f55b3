"""From the name of an exporter to the exporter."""

from importlib.metadata import entry_points

from .._config import EXPORTER_ENTRY_POINTS, ProfilerConfig
from ..errors import ExporterUnavailable
from ._base import ProfileExporter
from ._otlp_settings import protocol_from_env


def otlp() -> ProfileExporter:
    """The OTLP exporter for the protocol that the environment names."""
    if protocol_from_env() == "grpc":
        from . import otlp_grpc

        return otlp_grpc.OTLPProfileExporter()
    from . import otlp_http

    return otlp_http.OTLPProfileExporter()


def make_exporter(config: ProfilerConfig) -> ProfileExporter:
    """The exporter that the configuration names; ExporterUnavailable when it cannot be made."""
    match config.exporter:
        case "otlp":
            return otlp()
        case "otlp_proto_http":
            from . import otlp_http

            return otlp_http.OTLPProfileExporter()
        case "otlp_proto_grpc":
            from . import otlp_grpc

            return otlp_grpc.OTLPProfileExporter()
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
