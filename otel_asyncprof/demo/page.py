"""The viewer's page on what the demo has received."""

import contextlib
from pathlib import Path
from typing import Self

from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_asyncprof.cli.page import page_of
from otel_asyncprof.demo.service import SHOP
from otel_asyncprof.viewer.intake import PROFILES, TRACES
from otel_asyncprof.viewer.server import CannotStart, Viewer, ViewerOptions
from otel_asyncprof.viewer.store import Limits, StoreFull

__all__ = ["CannotStart", "Page"]

KEPT = Limits(size_bytes=128 << 20)  # it is in memory


class Page:
    """A viewer that is given what others have received, from `with` to the end of its block."""

    def __init__(self) -> None:
        root = Path(SHOP).parent
        self._viewer = Viewer(
            ViewerOptions(grpc_port=None, http_port=None, limits=KEPT, source_root=root, html_of=page_of)
        )

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return self._viewer.address_with_token

    def take(self, message: Message) -> None:
        """Shows a request; when there is too much, it is left out."""
        signal = TRACES if isinstance(message, ExportTraceServiceRequest) else PROFILES
        with contextlib.suppress(StoreFull):
            self._viewer.intake.take(signal, message)

    def __enter__(self) -> Self:
        self._viewer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._viewer.stop()
