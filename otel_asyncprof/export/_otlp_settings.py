"""Where OTLP goes and how: arguments, else OTEL_EXPORTER_OTLP_PROFILES_*, else OTEL_EXPORTER_OTLP_*, else defaults."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from .. import environment_variables as variables
from .._options import Option, boolean, choice, duration, read_variable, text
from .._otlp_options import is_grpc_header_name, is_grpc_target, is_header_name, is_header_value, is_url, split_pair
from ..errors import ConfigurationError

_logger = logging.getLogger(__name__)

Protocol = Literal["http/protobuf", "grpc"]

HTTP_PATH = "v1development/profiles"
DEFAULT_ENDPOINT: dict[Protocol, str] = {"http/protobuf": "http://localhost:4318", "grpc": "http://localhost:4317"}
DEFAULT_TIMEOUT = 10.0

_GENERIC = {
    variables.OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL: "OTEL_EXPORTER_OTLP_PROTOCOL",
    variables.OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT: "OTEL_EXPORTER_OTLP_ENDPOINT",
    variables.OTEL_EXPORTER_OTLP_PROFILES_HEADERS: "OTEL_EXPORTER_OTLP_HEADERS",
    variables.OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT: "OTEL_EXPORTER_OTLP_TIMEOUT",
    variables.OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION: "OTEL_EXPORTER_OTLP_COMPRESSION",
    variables.OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE: "OTEL_EXPORTER_OTLP_CERTIFICATE",
    variables.OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY: "OTEL_EXPORTER_OTLP_CLIENT_KEY",
    variables.OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    variables.OTEL_EXPORTER_OTLP_PROFILES_INSECURE: "OTEL_EXPORTER_OTLP_INSECURE",
}

_TIMEOUT = Option(variables.OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT, duration("s", 0.001, 3600), "0.001 to 3600 seconds")
_COMPRESSION = Option(
    variables.OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION, choice("none", "gzip", "deflate"), "none, gzip, deflate"
)
_PROTOCOL = Option(
    variables.OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL, choice("http/protobuf", "grpc"), "http/protobuf, grpc"
)
_INSECURE = Option(variables.OTEL_EXPORTER_OTLP_PROFILES_INSECURE, boolean, "true, false")


def protocol_from_env(environ: Mapping[str, str] = os.environ) -> Protocol:
    """How OTLP is sent when nothing else says so."""
    return "grpc" if _read(_PROTOCOL, environ) == "grpc" else "http/protobuf"


@dataclass(frozen=True)
class OtlpSettings:
    """Everything an OTLP exporter needs to know. What may hold a secret is not in the repr."""

    endpoint: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)  # lower-case names
    timeout: float = DEFAULT_TIMEOUT
    compression: str = "none"
    certificate: str | None = None
    client_key: str | None = None
    client_certificate: str | None = None
    insecure: bool = False  # gRPC without TLS

    @classmethod
    def resolve(
        cls,
        protocol: Protocol,
        *,
        endpoint: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        compression: str | None = None,
        certificate: str | None = None,
        client_key: str | None = None,
        client_certificate: str | None = None,
        insecure: bool | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> "OtlpSettings":
        """Completes the arguments; a bad one raises ConfigurationError, a bad variable is warned about and left out."""
        url = _endpoint(protocol, endpoint, environ)
        return cls(
            endpoint=url,
            headers=_headers_from_env(protocol, environ) | _checked_headers(protocol, headers or {}),
            timeout=float(_argument("timeout", timeout, _TIMEOUT, environ, DEFAULT_TIMEOUT)),
            compression=str(_argument("compression", compression, _COMPRESSION, environ, "none")),
            certificate=certificate or _path(variables.OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE, environ),
            client_key=client_key or _path(variables.OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY, environ),
            client_certificate=client_certificate
            or _path(variables.OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE, environ),
            insecure=_is_insecure(url, insecure, environ),
        )

    @property
    def shown_endpoint(self) -> str:
        """The endpoint as it may be logged."""
        return without_secrets(self.endpoint)


def without_secrets(url: str) -> str:
    """The URL with neither user, password, query nor fragment, and for no URL: passwords may hold any of "/?#@"."""
    scheme, slashes, rest = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
    place, mark, tail = _cut(rest, "?#")
    if (slashes and not scheme.isalnum()) or (mark and "@" in tail):
        return "(not shown)"
    return f"{scheme}{slashes}{place.rpartition('@')[2]}"


def _cut(text: str, marks: str) -> tuple[str, str, str]:
    position = min((text.index(mark) for mark in marks if mark in text), default=len(text))
    return text[:position], text[position : position + 1], text[position + 1 :]


def _read(option: Option, environ: Mapping[str, str]) -> object:
    return read_variable(option, environ, _GENERIC[option.variable])


def _argument(
    name: str, value: float | str | None, option: Option, environ: Mapping[str, str], default: float | str
) -> float | str:
    if value is None:
        found = _read(option, environ)
        return found if isinstance(found, (float, str)) else default
    try:
        parsed = option.parse(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigurationError(f"{name}={value!r} is not allowed (allowed: {option.allowed})") from None
    assert isinstance(parsed, (float, str))
    return parsed


def _path(variable: str, environ: Mapping[str, str]) -> str | None:
    found = _read(Option(variable, text, "a path"), environ)
    return found if isinstance(found, str) else None


def _endpoint(protocol: Protocol, given: str | None, environ: Mapping[str, str]) -> str:
    if given is not None:
        if not _is_endpoint(protocol, given):
            raise ConfigurationError(
                f"endpoint={without_secrets(given)!r} is not allowed (allowed: {_allowed(protocol)})"
            )
        return given
    own, generic = variables.OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT, "OTEL_EXPORTER_OTLP_ENDPOINT"
    for variable in (own, generic):
        url = environ.get(variable, "").strip()
        if not url:
            continue
        if not _is_endpoint(protocol, url):
            _logger.warning(
                "%s=%r is not allowed (allowed: %s); the default is used",
                variable,
                without_secrets(url),
                _allowed(protocol),
            )
            break
        return url if variable == own or protocol == "grpc" else _with_path(url)
    return DEFAULT_ENDPOINT[protocol] if protocol == "grpc" else _with_path(DEFAULT_ENDPOINT[protocol])


def _with_path(base: str) -> str:
    return f"{base.removesuffix('/')}/{HTTP_PATH}"


def _is_endpoint(protocol: Protocol, url: str) -> bool:
    return is_grpc_target(url) if protocol == "grpc" else is_url(url)


def _allowed(protocol: Protocol) -> str:
    return "a URL with http:// or https://" + (", or host:port" if protocol == "grpc" else "")


def _is_insecure(url: str, given: bool | None, environ: Mapping[str, str]) -> bool:
    scheme = urlsplit(url).scheme
    if scheme == "https":
        return False
    if given is not None:
        return given
    found = _read(_INSECURE, environ)
    return found if isinstance(found, bool) else scheme == "http"


def _headers_from_env(protocol: Protocol, environ: Mapping[str, str]) -> dict[str, str]:
    own = variables.OTEL_EXPORTER_OTLP_PROFILES_HEADERS
    for variable in (own, _GENERIC[own]):
        if raw := environ.get(variable, "").strip():
            return _parse_headers(protocol, variable, raw)
    return {}


def _parse_headers(protocol: Protocol, variable: str, raw: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for position, pair in enumerate(raw.split(","), 1):
        if not pair.strip():
            continue
        name, value = split_pair(pair)
        # Without "=" the whole pair may be the secret; a bad name may be half of one. Then only its place is told.
        if not is_header_name(name):
            _logger.warning("%s: pair %d is not name=value and is left out", variable, position)
        elif not _is_header_name(protocol, name):
            _logger.warning("%s: gRPC takes no header %r; it is left out", variable, name)
        elif not is_header_value(value):
            _logger.warning("%s: the value of %r holds characters no header may have; it is left out", variable, name)
        else:
            headers[name] = value
    return headers


def _checked_headers(protocol: Protocol, headers: Mapping[str, str]) -> dict[str, str]:
    checked = {}
    for position, (name, value) in enumerate(headers.items(), 1):
        lowered = name.lower() if isinstance(name, str) else ""
        if not _is_header_name(protocol, lowered):
            raise ConfigurationError(f"header {position} has a name that no header may have")
        if not is_header_value(value):
            raise ConfigurationError(
                f"the value of the header {name!r} is no text, or holds characters no header may have"
            )
        checked[lowered] = value
    return checked


def _is_header_name(protocol: Protocol, name: str) -> bool:
    return is_grpc_header_name(name) if protocol == "grpc" else is_header_name(name)
