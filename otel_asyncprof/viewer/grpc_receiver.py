"""OTLP over gRPC."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from .access import Access, bearer
from .intake import LOGS, MAX_MESSAGE_BYTES, METRICS, PROFILES, TRACES, Intake
from .store import StoreFull

SERVICES = {
    "opentelemetry.proto.collector.trace.v1.TraceService": TRACES,
    "opentelemetry.proto.collector.profiles.v1development.ProfilesService": PROFILES,
    "opentelemetry.proto.collector.metrics.v1.MetricsService": METRICS,
    "opentelemetry.proto.collector.logs.v1.LogsService": LOGS,
}
MAX_WORKERS = 4
STOP_SECONDS = 2.0


class PortTaken(Exception):
    """Something else listens there."""


class GrpcReceiver:
    """Listens from `start` to `stop`."""

    def __init__(self, intake: Intake, access: Access, host: str, port: int) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(MAX_WORKERS, "viewer-grpc"),
            options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES), ("grpc.so_reuseport", 0)],
        )
        for service, signal in SERVICES.items():
            handler = grpc.unary_unary_rpc_method_handler(_exporting(intake, access, signal))
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port: int = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise PortTaken(str(error)) from None
        if self.port == 0:
            raise PortTaken(address)

    def start(self) -> None:
        """Begins to answer."""
        self._server.start()

    def stop(self) -> None:
        """Ends after the requests under way."""
        self._server.stop(STOP_SECONDS).wait()


def _exporting(intake: Intake, access: Access, signal: str) -> Callable[[bytes, Any], bytes]:
    def export(request: bytes, context: Any) -> bytes:
        metadata = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
        if not access.allows_token(bearer(metadata.get("authorization"))):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token is needed: OTEL_EXPORTER_OTLP_HEADERS")
        try:
            answer = intake.take(signal, intake.parse(signal, request, is_json=False))
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except StoreFull:
            context.abort(grpc.StatusCode.UNAVAILABLE, "more arrives than can be written")
        serialized: bytes = answer.SerializeToString()
        return serialized

    return export
