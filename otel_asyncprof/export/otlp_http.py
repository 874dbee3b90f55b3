"""OTLP over HTTP: POST of binary protobuf to …/v1development/profiles."""

import gzip
import http
import ssl
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from .._version import __version__
from ._otlp import PROFILES_DEVELOPMENT_VERSION, VERSION_HEADER, Answer, OtlpExporter, Verdict, rejected_profiles
from ._otlp_settings import OtlpSettings
from ._sdk_transport import HttpTransport, http_transport

_RETRYABLE = {429, 502, 503, 504}
_NOT_UNDERSTOOD = {400, 404}

# Transports of a parent process: the pools within may have been locked at the fork, and freeing them takes that lock.
_abandoned: list[HttpTransport] = []


class OTLPProfileExporter(OtlpExporter):
    """Sends profiles over HTTP to the endpoint as it is; OTEL_EXPORTER_OTLP_ variables fill in what is not given."""

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        compression: str | None = None,
        certificate_file: str | None = None,
        client_key_file: str | None = None,
        client_certificate_file: str | None = None,
    ) -> None:
        super().__init__(
            OtlpSettings.resolve(
                "http/protobuf",
                endpoint=endpoint,
                headers=headers,
                timeout=timeout,
                compression=compression,
                certificate=certificate_file,
                client_key=client_key_file,
                client_certificate=client_certificate_file,
            )
        )
        self._transport: HttpTransport | None = http_transport(self._settings)

    def _attempt(self, request: bytes, timeout: float) -> Answer:
        if self._transport is None:
            self._transport = http_transport(self._settings)
        reply = self._transport.post(self._settings.endpoint, self._headers(), self._compress(request), timeout)
        if reply.error is not None:
            return Answer(Verdict.RETRY if _may_pass(reply.error) else Verdict.REFUSED, describe_error(reply.error))
        if 200 <= reply.status < 300:
            return Answer(Verdict.ACCEPTED, rejected_profiles=rejected_profiles(reply.body))
        text = _status_text(reply.status)
        if reply.status in _RETRYABLE:
            return Answer(Verdict.RETRY, text, retry_after=_retry_after(reply.headers))
        return Answer(Verdict.NOT_UNDERSTOOD if reply.status in _NOT_UNDERSTOOD else Verdict.REFUSED, text)

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        super().shutdown(timeout_millis)
        if self._transport is not None:
            self._transport.close()

    def after_fork(self) -> None:
        super().after_fork()
        if self._transport is not None:
            self._transport.unlock_after_fork()
            _abandoned.append(self._transport)
        self._transport = None  # made by the export thread: most children end before they export anything

    def _headers(self) -> dict[str, str]:
        headers = {
            "user-agent": f"otel-asyncprof/{__version__}",
            VERSION_HEADER: PROFILES_DEVELOPMENT_VERSION,
            **self._settings.headers,
            "content-type": "application/x-protobuf",
        }
        if self._settings.compression != "none":
            headers["content-encoding"] = self._settings.compression
        return headers

    def _compress(self, request: bytes) -> bytes:
        match self._settings.compression:
            case "gzip":
                return gzip.compress(request)
            case "deflate":
                return zlib.compress(request)
            case _:
                return request


def _status_text(status: int) -> str:
    try:
        return f"HTTP {status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _causes(error: BaseException) -> list[BaseException]:
    """The error and what it came from: causes, contexts, and the arguments in which libraries keep the real one."""
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting and len(found) < 20:
        item = waiting.pop(0)
        if isinstance(item, BaseException) and not any(item is seen for seen in found):
            found.append(item)
            waiting += [getattr(item, "reason", None), *item.args, item.__cause__, item.__context__]
    return found


def describe_error(error: BaseException) -> str:
    """What went wrong, without the text of the error: that holds the URL."""
    causes = _causes(error)
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate was not accepted ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason or type(cause).__name__})"
    for cause in causes:
        if isinstance(cause, TimeoutError) or "Timeout" in type(cause).__name__:
            return "no answer in time"
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            return cause.strerror
    return type(causes[-1]).__name__


def _may_pass(error: BaseException) -> bool:
    """Connections come back; an unusable URL and a wrong certificate, both ValueErrors, do not."""
    return not any(isinstance(cause, ValueError) for cause in _causes(error))
