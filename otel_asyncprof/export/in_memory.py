"""An exporter that keeps everything, for tests."""

import threading
from collections.abc import Sequence

from ._base import ProfileExporter, ProfileExportResult


class InMemoryProfileExporter(ProfileExporter):
    """Keeps the requests until clear(); after shutdown() it takes no more."""

    def __init__(self) -> None:
        self.after_fork()

    def export(self, requests: Sequence[bytes]) -> ProfileExportResult:
        with self._lock:
            if self._closed:
                return ProfileExportResult.FAILURE
            self._requests.extend(requests)
        return ProfileExportResult.SUCCESS

    def get_finished_requests(self) -> tuple[bytes, ...]:
        """All requests exported so far."""
        with self._lock:
            return tuple(self._requests)

    def clear(self) -> None:
        """Forgets the requests."""
        with self._lock:
            self._requests.clear()

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        with self._lock:
            self._closed = True

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[bytes] = []
        self._closed = False
