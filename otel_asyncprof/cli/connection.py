"""Whether the receiver of profiles can be reached and knows them: by an empty request, which leaves nothing there."""

import os
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..export._otlp_settings import DEFAULT_ENDPOINT, OtlpSettings, protocol_from_env, without_secrets

if TYPE_CHECKING:
    from .._config import ProfilerConfig
    from .checks import Result

_TIMEOUT = 3.0
_NAME = "receiver"
_SET = ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PORTS = {"http": 80, "https": 443}


def reach(exporter: str, config: "ProfilerConfig") -> "Result":
    """What came of it; a note where profiles are not sent anywhere."""
    from .checks import Result

    if not exporter.startswith("otlp"):
        return Result(_NAME, "note", f"profiles are not sent: OTEL_PROFILES_EXPORTER={exporter}")
    protocol = (
        "grpc"
        if exporter.endswith("grpc") or (exporter == "otlp" and protocol_from_env() == "grpc")
        else "http/protobuf"
    )
    settings = OtlpSettings.resolve(protocol)  # type: ignore[arg-type]
    shown = without_secrets(settings.endpoint)
    if (refusal := _connect(settings.endpoint)) is not None:
        if not any(os.environ.get(name) for name in _SET):
            if exporter == "otlp" and protocol != "grpc" and _connect(DEFAULT_ENDPOINT["grpc"]) is None:
                step = "set OTEL_EXPORTER_OTLP_PROTOCOL=grpc; under opentelemetry-instrument the distro does so"
                detail = f"nothing listens at {shown}, but something does at {DEFAULT_ENDPOINT['grpc']}"
                return Result(_NAME, "note", detail, step)
            step = "set OTEL_EXPORTER_OTLP_ENDPOINT, start otel-asyncprof serve, or record to a file with run -o FILE"
            return Result(_NAME, "note", f"no endpoint is set, and nothing listens at the default, {shown}", step)
        step = f"start the receiver, or correct {next(name for name in _SET if os.environ.get(name))}"
        return Result(_NAME, "problem", f"{shown} cannot be reached: {refusal}", step)
    result = _ask(config, shown)
    if result.outcome == "ok" and exporter == "otlp" and not _protocol_is_set() and find_spec("opentelemetry.distro"):
        detail = f"{result.detail} over {protocol}; under opentelemetry-instrument the distro takes gRPC unless told"
        return Result(_NAME, "note", detail, f"set OTEL_EXPORTER_OTLP_PROTOCOL={protocol}")
    return result


def _protocol_is_set() -> bool:
    return any(os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}PROTOCOL") for kind in ("", "PROFILES_"))


def _connect(endpoint: str) -> str | None:
    """Why nobody answers there; None when somebody does."""
    parts = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
    try:
        port = parts.port or _PORTS.get(parts.scheme, 443)
        socket.create_connection((parts.hostname or "", port), _TIMEOUT).close()
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def _ask(config: "ProfilerConfig", shown: str) -> "Result":
    from ..export._base import ProfileExportResult
    from ..export.factory import make_exporter
    from .checks import Result

    os.environ.setdefault("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", str(_TIMEOUT))
    exporter = make_exporter(config)
    try:
        if exporter.export([b""]) is ProfileExportResult.SUCCESS:
            return Result(_NAME, "ok", f"{shown} takes profiles")
        step = "let it accept OTLP profiles (Collector: --feature-gates=+service.profilesSupport, a profiles pipeline)"
        return Result(_NAME, "problem", f"{shown} does not take profiles: {exporter.last_error}", step)
    finally:
        exporter.shutdown()
