"""Exporters. Those over the network stand in otlp_http and otlp_grpc and are imported when they are used."""

from ._base import ProfileExporter, ProfileExportResult
from .in_memory import InMemoryProfileExporter

__all__ = ["InMemoryProfileExporter", "ProfileExportResult", "ProfileExporter"]
