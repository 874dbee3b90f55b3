"""The version, for the package's metadata and for the instrumentation scope."""

__version__ = "0.1.0"
