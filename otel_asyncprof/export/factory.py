"""From the name of an exporter to the exporter."""

from importlib.metadata import entry_points

from .._config import EXPORTER_ENTRY_POINTS, ProfilerConfig
from ..errors import ExporterUnavailable
from ._base import ProfileExporter


def make_exporter(config: ProfilerConfig) -> ProfileExporter:
    """The exporter that the configuration names; ExporterUnavailable when it cannot be made."""
    for entry_point in entry_points(group=EXPORTER_ENTRY_POINTS, name=config.exporter):
        exporter = entry_point.load()()
        if isinstance(exporter, ProfileExporter):
            return exporter
        raise ExporterUnavailable(f"the entry point {config.exporter!r} made no ProfileExporter")
    raise ExporterUnavailable(f"there is no profiles exporter {config.exporter!r}")
