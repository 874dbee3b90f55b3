"""A recording: the profiles and traces of one run, and the bytes of a file that holds them.

The file is OTLP/JSON, one message a line, with profiles and traces side by side: what the Collector's file exporter
writes and its `otlpjsonfile` receiver reads. What the `file` exporters write as protobuf, and single messages, are read
too.
"""

import contextlib
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import UnreadableRecording
from .otlp import messages_of, prefixed_messages_of
from .otlp_json import json_line, read_json

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
MAX_UNPACKED_BYTES = 1 << 30  # of a compressed file
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
    if _ZSTD in (content[:4], content[4:8]):  # with a length before each message, where it is a Collector's
        raise UnreadableRecording("it is compressed with zstd; gzip and no compression can be read")
    if not content.strip():
        raise UnreadableRecording("it is empty: nothing was recorded")
    refusal = UnreadableRecording("it is neither OTLP/JSON nor OTLP protobuf")
    if content.lstrip()[:1] in (b"{", b"["):  # or a length of protobuf that looks like it
        try:
            return _of_json(content)
        except UnreadableRecording as error:
            refusal = error
    for messages in (messages_of(content), prefixed_messages_of(content), iter([content])):
        if found := _of_messages(messages):
            return found
    raise refusal


def _decompress(content: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as file:
            unpacked = file.read(MAX_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise UnreadableRecording("its compression is damaged, or its end is missing") from None
    if len(unpacked) > MAX_UNPACKED_BYTES:
        raise UnreadableRecording(f"it unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
    return unpacked


def _of_json(content: bytes) -> Recording:
    recording = Recording()
    try:
        for document in _documents(content):
            _add_document(recording, document)
    except RecursionError:
        raise UnreadableRecording("it is nested too deeply") from None
    return recording


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


def _of_messages(messages: Iterable[bytes]) -> Recording | None:
    """The messages, if all of them are profiles or traces; UnreadableRecording when only the end is missing."""
    found = Recording()
    try:
        if all(_add_message(found, message) for message in messages):
            return found
    except EOFError:
        if found.profiles or found.traces:
            raise UnreadableRecording("its last message is cut off") from None
    return None


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
