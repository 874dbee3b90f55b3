"""The folder in which processes leave what they record, until `otel-asyncprof run` reads it at the end.

Each process appends to files of its own, messages behind their lengths: what a killed process has written counts.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..formats.otlp import delimited, messages_of

if TYPE_CHECKING:
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    from ..formats.recording import Recording

_PID = "process.pid"
_PROFILES, _TRACES, _NOTE = ".profiles", ".traces", ".note"


class Spool:
    """Written by the processes, read by their parent."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def add_profiles(self, messages: list[bytes]) -> None:
        """Appends serialised ProfilesData."""
        self._append(_PROFILES, messages)

    def add_traces(self, messages: list[bytes]) -> None:
        """Appends serialised TracesData."""
        self._append(_TRACES, messages)

    def begin(self) -> None:
        """Says that this process is recorded, whether it lives long enough to be seen or not."""
        self._append(_PROFILES, [])

    @property
    def has_begun(self) -> bool:
        """Whether any process was recorded."""
        return any(self.folder.glob(f"*{_PROFILES}"))

    def add_note(self, reason: str) -> None:
        """Says why this process is not recorded."""
        (self.folder / f"{os.getpid()}{_NOTE}").write_text(reason, encoding="utf-8")

    def _append(self, suffix: str, messages: list[bytes]) -> None:
        with (self.folder / f"{os.getpid()}{suffix}").open("ab") as file:
            file.write(b"".join(map(delimited, messages)))

    def read(self) -> "Recording":
        """All that has been written."""
        from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

        from ..formats.recording import Recording

        recording = Recording()
        for pid, message in self._messages(_PROFILES):
            profiles = ProfilesData.FromString(message)
            for of_process in profiles.resource_profiles:
                _name_process(of_process.resource, pid)
            recording.profiles.append(profiles)
        for pid, message in self._messages(_TRACES):
            traces = TracesData.FromString(message)
            for of_spans in traces.resource_spans:
                _name_process(of_spans.resource, pid)
            recording.traces.append(traces)
        return recording

    def notes(self) -> list[tuple[int, str]]:
        """Processes that are not recorded, with the reasons."""
        files = sorted(self.folder.glob(f"*{_NOTE}"))
        return [(int(file.stem), file.read_text(encoding="utf-8", errors="replace")) for file in files]

    def _messages(self, suffix: str) -> Iterator[tuple[int, bytes]]:
        for file in sorted(self.folder.glob(f"*{suffix}")):
            with contextlib.suppress(EOFError):  # the process was killed while it wrote
                for message in messages_of(file.read_bytes()):
                    yield int(file.stem), message


def _name_process(resource: "Resource", pid: int) -> None:
    """Adds the process's id, which OpenTelemetry's resource need not have and by which people tell processes apart."""
    if not any(attribute.key == _PID for attribute in resource.attributes):
        resource.attributes.add(key=_PID).value.int_value = pid
