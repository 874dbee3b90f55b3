"""An exporter that appends to a file: OTLP ProfilesData messages, each behind its length as a varint."""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import environment_variables as variables
from ..formats.otlp import delimited
from ._base import ProfileExporter, ProfileExportResult

_logger = logging.getLogger(__name__)

DEFAULT_FILE = "asyncprof.otlp"
_MAX_MESSAGE_BYTES = 1 << 31  # what protobuf allows


class FileProfileExporter(ProfileExporter):
    """Appends to the path, by default OTEL_ASYNCPROF_FILE. A request is laid out as a ProfilesData message is."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path or os.environ.get(variables.OTEL_ASYNCPROF_FILE) or DEFAULT_FILE)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}({str(self.path)!r})"

    def export(self, requests: Sequence[bytes]) -> ProfileExportResult:
        # One write of all: processes that append to the same file do not tear each other's messages.
        content = b"".join(delimited(request) for request in requests)
        try:
            with self.path.open("ab", buffering=0) as file:
                written = 0
                while written < len(content):
                    written += file.write(content[written:])
        except OSError as error:
            reason = f"{self.path} cannot be written: {error.strerror}; {variables.OTEL_ASYNCPROF_FILE} names the file"
            return self._tell_loss(_logger, "a profile", reason)
        self.last_error = ""
        return ProfileExportResult.SUCCESS


def read_profiles(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The messages of a file, the oldest first; EOFError at one that is cut off."""
    with Path(path).open("rb") as file:
        while first := file.read(1):
            size, shift = first[0] & 0x7F, 7
            byte = first
            while byte[0] & 0x80:
                byte = file.read(1)
                if not byte or shift > 28:
                    raise EOFError(f"{os.fspath(path)} ends within the length of a message, or holds something else")
                size |= (byte[0] & 0x7F) << shift
                shift += 7
            message = file.read(size) if size < _MAX_MESSAGE_BYTES else b""
            if len(message) < size:
                raise EOFError(f"{os.fspath(path)} ends within a message")
            yield message
