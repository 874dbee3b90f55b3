"""What was seen and is not exported yet: others may look at it before, and nothing is lost by that."""

import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

_logger = logging.getLogger(__name__)


class Listener(Protocol):
    """Who wants to see what was collected."""

    def add(self, requests: list[bytes]) -> None:
        """Called in whichever thread collects."""


_listeners: "weakref.WeakSet[Listener]" = weakref.WeakSet()
_current: "weakref.ref[Collection] | None" = None


def listen(listener: Listener) -> None:
    """Has an object see all that is collected from now on, for as long as it lives."""
    _listeners.add(listener)


def begin(collect: Callable[[], list[bytes]]) -> "Collection":
    """The collection of a profiler that starts, or starts anew in the child of a fork."""
    global _current
    collection = Collection(collect)
    _current = weakref.ref(collection)
    return collection


def look(new_enough_seconds: float = 0.0) -> bool:
    """Has the listeners see what was seen until now, or until so long ago; false when no profiler runs."""
    collection = _current() if _current is not None else None
    if collection is None:
        return False
    collection.look(new_enough_seconds)
    return True


class Collection:
    """Requests between the sampler, of which everything can be taken once, and the exporter."""

    def __init__(self, collect: Callable[[], list[bytes]]) -> None:
        self._collect = collect
        self._lock = threading.Lock()
        self._kept: list[bytes] = []
        self._collected_at = float("-inf")

    def look(self, new_enough_seconds: float) -> None:
        """Collects what was seen until now, unless that was just done, and keeps it for the next export."""
        with self._lock:
            if time.monotonic() - self._collected_at >= new_enough_seconds:
                self._kept += self._collect_and_tell()

    def take(self) -> list[bytes]:
        """All that was seen and not exported yet."""
        with self._lock:
            kept, self._kept = self._kept, []
            return [*kept, *self._collect_and_tell()]

    def _collect_and_tell(self) -> list[bytes]:
        self._collected_at = time.monotonic()
        requests = self._collect()
        for listener in list(_listeners) if requests else ():
            try:
                listener.add(requests)
            except Exception:
                _logger.debug("what was collected could not be looked at", exc_info=True)
        return requests
