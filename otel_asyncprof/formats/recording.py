"""A recording: the profiles and traces of one run, and the bytes of a file that holds them.

The file is OTLP/JSON, one message a line, with profiles and traces side by side: what the Collector's file exporter
writes and its `otlpjsonfile` receiver reads. What the `file` exporter writes, and single messages, are read too.
"""

import contextlib
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import UnreadableRecording
from .otlp import messages_of
from .otlp_json import json_line, read_json

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

_GZIP = b"\x1f\x8b"
_FOREIGN = {  # what a key at the top of a JSON document says about its origin
    "$schema": "a speedscope file",
    "traceEvents": "a Chrome trace",
    "threads": "a Firefox profile",
}


@dataclass
class Recording:
    """Profiles and traces in the order in which they were recorded."""

    profiles: "list[ProfilesData]" = field(default_factory=list)
    traces: "list[TracesData]" = field(default_factory=list)


def to_recording(recording: Recording) -> bytes:
    """Traces first, so that whoever reads line by line knows the spans when their samples come."""
    return b"".join(json_line(message) for message in [*recording.traces, *recording.profiles])


def read_recording(content: bytes) -> Recording:
    """What a file holds; UnreadableRecording, with the reason, when that is no recording."""
    if content[:2] == _GZIP:
        content = _decompress(content)
    if not content.strip():
        raise UnreadableRecording("it is empty: nothing was recorded")
    recording = Recording()
    if content.lstrip()[:1] in (b"{", b"["):
        for document in _documents(content):
            _add_document(recording, document)
    else:
        _add_protobuf(recording, content)
    return recording


def _decompress(content: bytes) -> bytes:
    try:
        unpacked = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise UnreadableRecording("its compression is damaged, or its end is missing") from None
    return unpacked


def _documents(content: bytes) -> Iterator[Any]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UnreadableRecording("it is not text") from None
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        yield from [json.loads(line) for line in lines]
    except ValueError as of_lines:
        try:
            yield json.loads(text)  # one document, laid out for people
        except ValueError:
            number = sum(1 for line in lines if _is_json(line))
            where = "its last line is cut off" if 0 < number == len(lines) - 1 else f"it is not JSON: {of_lines}"
            raise UnreadableRecording(where) from None


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _add_document(recording: Recording, document: Any) -> None:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    if not isinstance(document, dict):
        raise UnreadableRecording("it is JSON, but no OTLP")
    try:
        if "resourceProfiles" in document:
            profiles = ProfilesData()
            read_json(document, profiles)
            recording.profiles.append(profiles)
        elif "resourceSpans" in document:
            traces = TracesData()
            read_json(document, traces)
            recording.traces.append(traces)
        elif document and not document.keys() & {"resourceMetrics", "resourceLogs"}:
            foreign = next((what for key, what in _FOREIGN.items() if key in document), "JSON, but no OTLP")
            raise UnreadableRecording(f"it is {foreign}")
    except ValueError as error:
        raise UnreadableRecording(f"it is not valid OTLP/JSON: {error}") from None


def _add_protobuf(recording: Recording, content: bytes) -> None:
    if _add_messages(recording, messages_of(content)) or _add_messages(recording, [content]):
        return
    raise UnreadableRecording("it is neither OTLP/JSON nor OTLP protobuf")


def _add_messages(recording: Recording, messages: Iterable[bytes]) -> bool:
    """Adds the messages if all of them are profiles or traces."""
    found = Recording()
    try:
        if not all(_add_message(found, message) for message in messages):
            return False
    except EOFError:
        return False
    recording.profiles += found.profiles
    recording.traces += found.traces
    return True


def _add_message(recording: Recording, message: bytes) -> bool:
    """Adds a message if it is one of profiles or of traces: the bytes do not say which."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    with contextlib.suppress(DecodeError):
        profiles = ProfilesData.FromString(message)
        if profiles.dictionary.string_table:
            recording.profiles.append(profiles)
            return True
    with contextlib.suppress(DecodeError):
        traces = TracesData.FromString(message)
        if any(scope.spans for resource in traces.resource_spans for scope in resource.scope_spans):
            recording.traces.append(traces)
            return True
    return False
