"""What receivers do with a request, over whichever transport it came."""

import json
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..formats.otlp_json import read_json
from .decoding import Batch, decoded_profiles, decoded_traces
from .store import Store, StoreFull

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from ..formats.recording import Recording

MAX_BODY_BYTES = 32 << 20  # as sent
MAX_MESSAGE_BYTES = 64 << 20  # unpacked
MAX_WAITS = 100  # of one message of a recording, for room
TRACES, PROFILES, METRICS, LOGS = ("traces", "profiles", "metrics", "logs")


class TooLarge(ValueError):
    """A request over a limit."""


def unpacked(body: bytes, encoding: str, most: int = MAX_MESSAGE_BYTES) -> bytes:
    """The body without its compression; TooLarge when that would be more than is allowed, ValueError when damaged."""
    if encoding in ("", "identity"):
        if len(body) > most:
            raise TooLarge(f"a request may have {most >> 20} MiB")
        return body
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as the data say
    try:
        content = decompressor.decompress(body, most + 1)
    except zlib.error as error:
        raise ValueError(f"the compression is damaged: {error}") from None
    if len(content) > most:
        raise TooLarge(f"a request may unpack to {most >> 20} MiB")
    if not decompressor.eof:
        raise ValueError("the compressed data end too early")
    return content


class Intake:
    """Decodes requests into the store, and answers them."""

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
        from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as profiles
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

        self.notes: list[str] = []
        self._store = store
        self._say = say
        self._requests: dict[str, Callable[[], Message]] = {
            TRACES: traces.ExportTraceServiceRequest,
            PROFILES: profiles.ExportProfilesServiceRequest,
        }
        self._answers: dict[str, Callable[[], Any]] = {
            TRACES: traces.ExportTraceServiceResponse,
            PROFILES: profiles.ExportProfilesServiceResponse,
            METRICS: metrics.ExportMetricsServiceResponse,
            LOGS: logs.ExportLogsServiceResponse,
        }

    def note(self, text: str) -> None:
        """Says something once."""
        if text not in self.notes:
            self.notes.append(text)
            self._say(text)

    def parse(self, signal: str, body: bytes, *, is_json: bool) -> Any:
        """The request; None of a signal that is dropped. ValueError when it is none."""
        from google.protobuf.message import DecodeError

        if signal not in self._requests:
            return None
        message = self._requests[signal]()
        if is_json:
            try:
                document = json.loads(body)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"it is not JSON: {error}") from None
            if not isinstance(document, dict):
                raise ValueError("it is JSON, but no request")
            read_json(document, message)
            return message
        try:
            message.ParseFromString(body)
        except DecodeError as error:
            raise ValueError(f"it is not protobuf: {error}") from None
        return message

    def take(self, signal: str, message: Any) -> Any:
        """Stores a request, and answers what was left out of it; StoreFull when there is no room now."""
        answer = self._answers[signal]()
        if signal not in self._requests:
            self.note(f"{signal} are accepted and dropped: only traces and profiles are shown here")
            return answer
        batch: Batch = decoded_traces(message) if signal == TRACES else decoded_profiles(message)
        if batch.spans or batch.samples or batch.rejected:
            self._store.add(batch)
        if batch.rejected:
            if signal == TRACES:
                answer.partial_success.rejected_spans = batch.rejected
            else:
                answer.partial_success.rejected_profiles = batch.rejected_profiles
            answer.partial_success.error_message = batch.reason
        return answer

    def take_all(self, recording: "Recording") -> None:
        """Stores a recording, and returns when all of it can be read. StoreFull when others keep it from that."""
        for signal, messages in ((TRACES, recording.traces), (PROFILES, recording.profiles)):
            for message in messages:
                self._take_patiently(signal, message)
        self._store.flush()

    def _take_patiently(self, signal: str, message: Any) -> None:
        for _ in range(MAX_WAITS):
            try:
                self.take(signal, message)
                return
            except StoreFull:
                self._store.flush()
        raise StoreFull
