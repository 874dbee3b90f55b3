"""Everything this package raises on purpose."""


class AsyncProfError(Exception):
    """Base of the errors of this package."""


class ConfigurationError(AsyncProfError, ValueError):
    """An option has a value that is not allowed."""


class UnreadableRecording(AsyncProfError):
    """A file holds no recording that can be read; the text is the reason."""


class ProfilerUnavailable(AsyncProfError):
    """The profiler cannot run in this process; the text is the reason."""


class ExporterUnavailable(AsyncProfError):
    """An exporter cannot be made; the text is the reason."""


def reason_of(error: Exception) -> str:
    """What a refusal says of an error: the text alone of one of ours, with its type that of any other."""
    return str(error) if isinstance(error, AsyncProfError) else f"{type(error).__name__}: {error}"
