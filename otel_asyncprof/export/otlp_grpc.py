"""OTLP over gRPC: ProfilesService/Export. grpc is imported when the first exporter is made."""

import os
import threading
import weakref
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

# gRPC aborts or hangs in the child of a fork in the middle of a call: a fork waits for ours (seconds), then ends it.
CALL_MAY_DELAY_FORK = 0.05
CALL_MAY_TAKE_TO_END = 1.0

_ENDED_BY_FORK = Answer(Verdict.RETRY, "a fork ended the call", retry_after=0)

# Channels of a parent process: closing or freeing one in the child may wait for threads that do not exist there.
_abandoned: list[object] = []

_exporters: "weakref.WeakSet[OTLPProfileExporter]" = weakref.WeakSet()


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
        self._in_call = threading.RLock()  # held during a call, and by whoever forks
        self._ended_calls = 0  # by a fork
        self._unsafe_fork = False  # the fork that is under way comes in the middle of a call all the same
        self._unusable = False
        _exporters.add(self)

    def _attempt(self, request: bytes, timeout: float) -> Answer:
        import grpc

        if self._unusable:
            return Answer(Verdict.REFUSED, "gRPC does not work in a process that was forked in the middle of a call")
        with self._in_call:
            ended_calls = self._ended_calls
            with self._channel_lock:
                if self._closed:
                    return Answer(Verdict.REFUSED, "the exporter is shut down")
                if self._ended_calls != ended_calls:
                    return _ENDED_BY_FORK
                if self._channel is None:
                    self._channel = self._new_channel()
                call = self._channel.unary_unary(EXPORT_METHOD, request_serializer=None, response_deserializer=None)
            try:
                response = call(request, timeout=timeout, metadata=self._metadata)
            except (grpc.RpcError, ValueError) as error:  # ValueError: the channel was closed before the call
                if self._ended_calls != ended_calls:
                    return _ENDED_BY_FORK
                if isinstance(error, grpc.RpcError):
                    return _answer(error)
                raise
        return Answer(Verdict.ACCEPTED, rejected_profiles=rejected_profiles(response))

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        super().shutdown(timeout_millis)
        with self._channel_lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()  # ends a call in progress

    def before_fork(self) -> None:
        """Keeps calls from being made until after_fork_in_parent()."""
        if self._in_call.acquire(timeout=CALL_MAY_DELAY_FORK):
            return
        self._ended_calls += 1
        with self._channel_lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        self._unsafe_fork = not self._in_call.acquire(timeout=CALL_MAY_TAKE_TO_END)

    def after_fork_in_parent(self) -> None:
        """Lets calls be made again."""
        if not self._unsafe_fork:
            self._in_call.release()
        self._unsafe_fork = False

    def after_fork(self) -> None:
        super().after_fork()
        self._unusable |= self._unsafe_fork
        self._in_call, self._channel_lock = threading.RLock(), threading.Lock()
        if self._channel is not None:
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


def _before_fork() -> None:
    for exporter in list(_exporters):
        exporter.before_fork()


def _after_fork_in_parent() -> None:
    for exporter in list(_exporters):
        exporter.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for exporter in list(_exporters):
        exporter.after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


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
