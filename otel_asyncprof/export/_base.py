"""What every exporter is."""

import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence


class ProfileExportResult(enum.Enum):
    """Whether all that was handed over has been delivered."""

    SUCCESS = 0
    FAILURE = 1


class ProfileExporter(ABC):
    """Takes serialised ExportProfilesServiceRequest messages; export() is called by one thread at a time."""

    last_error: str = ""
    """What went wrong last, for people to read; empty when the last export went well. It holds no secret."""

    @abstractmethod
    def export(self, requests: Sequence[bytes]) -> ProfileExportResult:
        """Delivers the requests; may block for as long as the exporter's timeout allows."""

    def _tell_loss(self, logger: logging.Logger, what: str, reason: str) -> ProfileExportResult:
        """Says that something is lost, but not again for the reason that was said last."""
        if reason != self.last_error:
            logger.warning("%s is lost: %s", what, reason)
        self.last_error = reason
        return ProfileExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 30_000) -> bool:
        """Delivers what export() has only put aside; true when nothing is left."""
        return True

    def finish_soon(self) -> None:  # noqa: B027
        """Called from another thread when the process wants to end: waits end now, nothing is tried twice."""

    def shutdown(self, timeout_millis: float = 30_000) -> None:  # noqa: B027
        """Frees what the exporter holds; after it, export() fails. May be called twice."""

    def after_fork(self) -> None:  # noqa: B027
        """Called in the child of a fork: connections and locks of the parent are left alone and made anew."""
