"""The one place that knows what OpenTelemetry's API and exporters keep private."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import TYPE_CHECKING, Any

from opentelemetry import context

from ..errors import ExporterUnavailable
from ._log_filter import without_query_in_logs
from ._otlp_settings import OtlpSettings

if TYPE_CHECKING:
    from opentelemetry.exporter.http.transport._requests import RequestsHTTPTransport
    from requests import Session

_CREDENTIAL_PROVIDERS = "opentelemetry_otlp_credential_provider"


def suppress_instrumentation() -> None:
    """From now on, nothing that the calling thread does makes a span."""
    current = context.get_current()
    # The keys are private constants of the API; instrumentations of older releases look for the plain text.
    for key in (
        getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", None),
        getattr(context, "_SUPPRESS_HTTP_INSTRUMENTATION_KEY", None),
        "suppress_instrumentation",
    ):
        if key is not None:
            current = context.set_value(key, True, current)
    context.attach(current)


@dataclass(frozen=True)
class HttpReply:
    """An answer, or the error in its place. Header names are in lower case."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: Exception | None = None


class HttpTransport:
    """The SDK's HTTP transport: proxies, TLS and connection reuse as for traces."""

    def __init__(self, transport: "RequestsHTTPTransport") -> None:
        self._transport = transport

    def post(self, url: str, headers: dict[str, str], body: bytes, timeout: float) -> HttpReply:
        """One request, without redirects; never raises for what happens on the network."""
        with without_query_in_logs():
            result = self._transport.request("POST", url, headers=headers, timeout=timeout, data=body)
        if result.error is not None or result.status_code is None:
            return HttpReply(error=result.error or ConnectionError())
        lowered = {name.lower(): value for name, value in result.headers().items()}
        return HttpReply(result.status_code, lowered, result.content())

    def close(self) -> None:
        """Closes idle connections."""
        self._transport.close()

    def unlock_after_fork(self) -> None:
        """In the child of a fork: urllib3 takes locks at exit that a thread of the parent may have held."""
        transport: Any = self._transport
        with suppress(AttributeError):  # private names of requests and urllib3, or a session of another kind
            for adapter in transport._session.adapters.values():
                for manager in (adapter.poolmanager, *adapter.proxy_manager.values()):
                    for pool in list(manager.pools._container.values()):
                        if pool.pool is not None:
                            pool.pool.mutex._at_fork_reinit()


def http_transport(settings: OtlpSettings) -> HttpTransport:
    """A transport with the TLS files of the settings and the session of a credential provider, when one is named."""
    try:
        from opentelemetry.exporter.http.transport._requests import RequestsHTTPTransport
    except ImportError as error:
        raise ExporterUnavailable(_missing("opentelemetry-exporter-otlp-proto-http", error)) from error
    for path in (settings.certificate, settings.client_certificate, settings.client_key):
        if path is not None and not os.access(path, os.R_OK):
            raise ExporterUnavailable(f"{path} cannot be read")
    certificate: str | tuple[str, str] | None = settings.client_certificate
    if settings.client_certificate and settings.client_key:
        certificate = (settings.client_certificate, settings.client_key)
    session = credential_provider("HTTP")
    try:
        if session is None and settings.certificate is not None:
            session = _session_that_trusts(settings.certificate)
        transport = RequestsHTTPTransport(verify=settings.certificate or True, cert=certificate, session=session)
    except (ImportError, TypeError) as error:
        raise ExporterUnavailable(_missing("opentelemetry-exporter-otlp-proto-http", error)) from error
    return HttpTransport(transport)


def _session_that_trusts(certificate: str) -> "Session":
    """A session that keeps to its certificate file: requests prefers REQUESTS_CA_BUNDLE to what a session says."""
    from requests import Session

    class CertificateSession(Session):
        def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
            return super().merge_environment_settings(url, proxies, stream, verify or certificate, cert)

    return CertificateSession()


def credential_provider(transport: str) -> Any:
    """What the entry point named by OTEL_PYTHON_EXPORTER_OTLP_<transport>_CREDENTIAL_PROVIDER makes."""
    name = os.environ.get(f"OTEL_PYTHON_EXPORTER_OTLP_{transport}_CREDENTIAL_PROVIDER")
    if not name:
        return None
    for entry_point in entry_points(group=_CREDENTIAL_PROVIDERS, name=name):
        try:
            return entry_point.load()()
        except Exception as error:  # anybody's code; its text may hold a secret
            raise ExporterUnavailable(f"the credential provider {name!r} failed: {type(error).__name__}") from None
    raise ExporterUnavailable(f"there is no entry point {name!r} in the group {_CREDENTIAL_PROVIDERS}")


def _missing(distribution: str, error: Exception) -> str:
    try:
        found = f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return f"{distribution} is not installed"
    return f"{found} has not the parts this exporter needs ({type(error).__name__}: {error})"
