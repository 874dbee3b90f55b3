"""What both OTLP exporters do alike: retries, the pause for a receiver that knows no profiles, and what is logged."""

import enum
import logging
import random
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ._base import ProfileExporter, ProfileExportResult
from ._otlp_settings import OtlpSettings

_logger = logging.getLogger(__name__)

PROFILES_DEVELOPMENT_VERSION = "1"  # of the encoder: opentelemetry-proto v1.10
VERSION_HEADER = "otlp-profiles-development-version"

NOT_UNDERSTOOD_PAUSE = 300.0  # seconds until such a receiver is asked again
REPORT_INTERVAL = 300.0  # seconds between two lines about the same thing
MAX_ATTEMPTS = 6


class Verdict(enum.Enum):
    """What became of one attempt to deliver one request."""

    ACCEPTED = "accepted"
    RETRY = "try again"
    REFUSED = "refused for good"
    NOT_UNDERSTOOD = "the receiver knows no profiles, or not this version"


@dataclass(frozen=True)
class Answer:
    """The outcome of one attempt. The text is ours, never the receiver's: it might echo a secret."""

    verdict: Verdict
    text: str = ""
    retry_after: float | None = None
    rejected_profiles: int = 0


def rejected_profiles(response: bytes) -> int:
    """What an accepting answer says was not taken after all."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceResponse

    try:
        return ExportProfilesServiceResponse.FromString(response).partial_success.rejected_profiles
    except DecodeError:
        return 0  # an answer that is no protobuf, of a receiver that took the request


class OtlpExporter(ProfileExporter):
    """Delivers requests one after the other; all of one export() share one timeout."""

    def __init__(self, settings: OtlpSettings) -> None:
        rejected_profiles(b"")  # imports now what the first answer needs: that may come at exit
        self._settings = settings
        self._finishing = threading.Event()
        self._closed = False
        self._paused_until = 0.0
        self._reported: dict[str, float] = {}
        self.delivered_requests = 0
        self.dropped_requests = 0
        self.rejected_profiles = 0
        self.last_error = ""

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}({self._settings.shown_endpoint!r})"

    @abstractmethod
    def _attempt(self, request: bytes, timeout: float) -> Answer:
        """Sends the request once and waits at most timeout seconds for the answer."""

    def export(self, requests: Sequence[bytes]) -> ProfileExportResult:
        deadline = time.monotonic() + self._settings.timeout
        delivered = 0
        if not self._closed and time.monotonic() >= self._paused_until:
            for request in requests:
                answer = self._deliver(request, deadline)
                if answer.verdict is Verdict.ACCEPTED:
                    delivered += 1
                    self._take_partial_success(answer)
                    continue
                self._report_failure(answer)
                if answer.verdict is Verdict.NOT_UNDERSTOOD:
                    self._paused_until = time.monotonic() + NOT_UNDERSTOOD_PAUSE
                    break
        if delivered:
            self._report_recovery()
        self.delivered_requests += delivered
        self.dropped_requests += len(requests) - delivered
        return ProfileExportResult.SUCCESS if delivered == len(requests) else ProfileExportResult.FAILURE

    def finish_soon(self) -> None:
        self._finishing.set()

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        self._closed = True
        self._finishing.set()

    def after_fork(self) -> None:
        self._finishing = threading.Event()
        self._paused_until = 0.0
        self._reported = {}

    def _deliver(self, request: bytes, deadline: float) -> Answer:
        answer = Answer(Verdict.RETRY, "no time was left to send it")
        for attempt in range(MAX_ATTEMPTS):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            try:
                answer = self._attempt(request, remaining)
            except Exception as error:  # its text may hold headers: the type has to do
                answer = Answer(Verdict.REFUSED, type(error).__name__)
            if answer.verdict is not Verdict.RETRY:
                break
            delay = answer.retry_after
            if delay is None:
                delay = 2.0**attempt * random.uniform(0.8, 1.2)
            if delay >= deadline - time.monotonic() or self._finishing.wait(delay):
                break
        return answer

    def _take_partial_success(self, answer: Answer) -> None:
        if answer.rejected_profiles:
            self.rejected_profiles += answer.rejected_profiles
            self._report(
                "partial", "%s rejected %d profiles (%d in all)", answer.rejected_profiles, self.rejected_profiles
            )

    def _report_failure(self, answer: Answer) -> None:
        self.last_error = answer.text
        match answer.verdict:
            case Verdict.NOT_UNDERSTOOD:
                self._report(
                    "not understood",
                    "%s does not take OTLP profiles of development version %s: %s. It is asked again in %d minutes; "
                    "until then profiles are dropped",
                    PROFILES_DEVELOPMENT_VERSION,
                    answer.text,
                    NOT_UNDERSTOOD_PAUSE // 60,
                )
            case Verdict.REFUSED:
                self._report("refused", "%s refused a profile, which is dropped: %s", answer.text)
            case _:
                self._report("unreachable", "a profile could not be sent to %s and is dropped: %s", answer.text)

    def _report_recovery(self) -> None:
        if self.last_error:
            self.last_error = ""
            self._reported.clear()
            _logger.info("%s takes profiles again", self._settings.shown_endpoint)

    def _report(self, kind: str, message: str, *arguments: object) -> None:
        # After shutdown the interpreter may end while the export thread still hangs in its last attempt: a thread that
        # dies holding the lock of a log stream makes the interpreter abort.
        now = time.monotonic()
        if self._closed or now - self._reported.get(kind, -REPORT_INTERVAL) < REPORT_INTERVAL:
            return
        self._reported[kind] = now
        _logger.warning(message, self._settings.shown_endpoint, *arguments)
