"""OTLP over gRPC: ProfilesService/Export. grpc is imported when the first exporter is made."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .._version import __version__
from ..errors import ExporterUnavailable
from ._otlp import PROFILES_DEVELOPMENT_VERSION, VERSION_HEADER, Answer, OtlpExporter, Verdict, rejected_profiles
from ._otlp_settings import OtlpSettings
from ._sdk_transport import credential_provider

if TYPE_CHECKING:
    import grpc

EXPORT_METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

_RETRYABLE = {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
_NOT_UNDERSTOOD = {"UNIMPLEMENTED", "INVALID_ARGUMENT"}

# Channels of a parent process: closing or freeing one in the child may wait for threads that do not exist there.
_abandoned: list[object] = []


class OTLPProfileExporter(OtlpExporter):
    """Sends profiles over gRPC; OTEL_EXPORTER_OTLP_ variables fill in what is not given."""

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        insecure: bool | None = None,
        credentials: "grpc.ChannelCredentials | None" = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        compression: str | None = None,
        certificate_file: str | None = None,
        client_key_file: str | None = None,
        client_certificate_file: str | None = None,
    ) -> None:
        super().__init__(
            OtlpSettings.resolve(
                "grpc",
                endpoint=endpoint,
                insecure=insecure,
                headers=headers,
                timeout=timeout,
                compression=compression,
                certificate=certificate_file,
                client_key=client_key_file,
                client_certificate=client_certificate_file,
            )
        )
        self._given_credentials = credentials
        self._metadata = (
            ((VERSION_HEADER, PROFILES_DEVELOPMENT_VERSION), *self._settings.headers.items())
            if VERSION_HEADER not in self._settings.headers
            else tuple(self._settings.headers.items())
        )
        self._channel_lock = threading.Lock()
        self._channel: grpc.Channel | None = self._new_channel()

    def _attempt(self, request: bytes, timeout: float) -> Answer:
        import grpc

        with self._channel_lock:
            if self._closed:
                return Answer(Verdict.REFUSED, "the exporter is shut down")
            if self._channel is None:
                self._channel = self._new_channel()
            call = self._channel.unary_unary(EXPORT_METHOD, request_serializer=None, response_deserializer=None)
        try:
            response = call(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            return _answer(error)
        return Answer(Verdict.ACCEPTED, rejected_profiles=rejected_profiles(response))

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        super().shutdown(timeout_millis)
        with self._channel_lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()  # ends a call in progress

    def after_fork(self) -> None:
        super().after_fork()
        self._channel_lock = threading.Lock()
        _abandoned.append(self._channel)
        self._channel = None

    def _new_channel(self) -> "grpc.Channel":
        try:
            import grpc
        except ImportError as error:
            raise ExporterUnavailable("opentelemetry-exporter-otlp-proto-grpc is not installed") from error

        compression = {
            "none": grpc.Compression.NoCompression,
            "gzip": grpc.Compression.Gzip,
            "deflate": grpc.Compression.Deflate,
        }[self._settings.compression]
        options = (("grpc.primary_user_agent", f"otel-asyncprof/{__version__}"),)
        target = _target(self._settings.endpoint)
        if self._settings.insecure:
            return grpc.insecure_channel(target, options=options, compression=compression)
        return grpc.secure_channel(target, self._credentials(), options=options, compression=compression)

    def _credentials(self) -> "grpc.ChannelCredentials":
        import grpc

        if self._given_credentials is not None:
            return self._given_credentials
        provided = credential_provider("GRPC")
        if provided is not None:
            if not isinstance(provided, grpc.ChannelCredentials):
                raise ExporterUnavailable("the gRPC credential provider made no grpc.ChannelCredentials")
            return provided
        return grpc.ssl_channel_credentials(
            root_certificates=_read(self._settings.certificate),
            private_key=_read(self._settings.client_key),
            certificate_chain=_read(self._settings.client_certificate),
        )


def _target(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme in ("http", "https"):
        return parts.netloc.rpartition("@")[2]
    return endpoint if "/" in endpoint else endpoint.rpartition("@")[2]  # gRPC tells what it cannot resolve


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ExporterUnavailable(f"{path} cannot be read: {error.strerror}") from error


def _answer(error: "grpc.RpcError") -> Answer:
    import grpc

    code = error.code() if isinstance(error, grpc.Call) else grpc.StatusCode.UNKNOWN
    text = f"gRPC {code.name}"
    if code.name in _NOT_UNDERSTOOD:
        return Answer(Verdict.NOT_UNDERSTOOD, text)
    delay = _retry_delay(error)
    # Too much at once will be too much again, unless the receiver names the time to come back.
    if code.name in _RETRYABLE or (code.name == "RESOURCE_EXHAUSTED" and delay is not None):
        return Answer(Verdict.RETRY, text, retry_after=delay)
    return Answer(Verdict.REFUSED, text)


def _retry_delay(error: "grpc.RpcError") -> float | None:
    import grpc
    from google.protobuf.message import DecodeError
    from google.rpc.error_details_pb2 import RetryInfo
    from google.rpc.status_pb2 import Status

    metadata: dict[str, str | bytes] = dict(error.trailing_metadata() or ()) if isinstance(error, grpc.Call) else {}
    info = RetryInfo()
    found = False
    try:
        if isinstance(status := metadata.get("grpc-status-details-bin"), bytes):
            found = any(detail.Unpack(info) for detail in Status.FromString(status).details)
        if not found and isinstance(alone := metadata.get("google.rpc.retryinfo-bin"), bytes):
            info.ParseFromString(alone)
            found = True
    except DecodeError:
        return None
    return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9) if found else None
