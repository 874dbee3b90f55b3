"""The export thread: collects and exports once per interval, on request, and one last time at the end."""

import logging
import threading
import time
from collections.abc import Callable

from ._base import ProfileExporter, ProfileExportResult
from ._thread_stack import start_with_room

_logger = logging.getLogger(__name__)

FIRST_SETTLE_PAUSE = 0.05  # seconds, doubled each time


class PeriodicExport:
    """A daemon thread. It holds no lock while it collects or exports, so nobody waits for it longer than he asked."""

    def __init__(
        self,
        collect: Callable[[], list[bytes]],
        exporter: ProfileExporter,
        interval: float,
        prepare_thread: Callable[[], None],
        settle: Callable[[], bool],
    ) -> None:
        self._collect = collect
        self._exporter = exporter
        self._interval = interval
        self._prepare_thread = prepare_thread
        self._settle = settle
        # An RLock inside: a signal handler may interrupt a holder in the same thread and come here again.
        self._changed = threading.Condition()
        self._asked = 0
        self._done = 0
        self._last_succeeded = True
        self._stopping = False
        self._ended = False
        self.last_error = ""  # the type of what the exporter raised last
        self.exported_intervals = 0
        self.failed_intervals = 0
        self._thread = threading.Thread(target=self._run, name="otel-asyncprof-export", daemon=True)

    def start(self) -> None:
        """Starts the thread; RuntimeError when the system gives none."""
        start_with_room(self._thread)

    def force_flush(self, timeout: float) -> bool:
        """Has everything seen until now exported; false when that fails or takes longer than timeout seconds."""
        with self._changed:
            self._asked += 1
            wanted = self._asked
            self._changed.notify_all()
            finished = self._changed.wait_for(lambda: self._done >= wanted or self._ended, timeout)
            return finished and self._done >= wanted and self._last_succeeded

    def stop(self, timeout: float) -> bool:
        """Has the rest exported, once, and ends the thread; false when that fails or takes over timeout seconds."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            ended = self._changed.wait_for(lambda: self._ended, timeout)
        if ended and self._thread is not threading.current_thread():
            self._thread.join(timeout=1)  # from _ended to the thread's end there is nothing to wait for
        return ended and self._last_succeeded

    @property
    def has_ended(self) -> bool:
        """Whether the thread has done its last export."""
        return self._ended

    def _run(self) -> None:
        try:
            self._prepare_thread()
            last = False
            while not last:
                self._wait(time.monotonic() + self._interval)
                with self._changed:
                    last, asked = self._stopping, self._asked
                succeeded = self._export_once()
                with self._changed:
                    self._last_succeeded = succeeded
                    self._done = asked
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _wait(self, deadline: float) -> None:
        """Until the deadline, a flush or the end; meanwhile settles what is left of the start, ever more rarely."""
        pause = FIRST_SETTLE_PAUSE
        while (remaining := deadline - time.monotonic()) > 0:
            try:
                settled = self._settle()
            except Exception:
                _logger.debug("what was left of the start failed", exc_info=True)
                settled = True
            with self._changed:
                if self._changed.wait_for(
                    lambda: self._stopping or self._asked > self._done, remaining if settled else min(pause, remaining)
                ):
                    return
            pause *= 2

    def _export_once(self) -> bool:
        try:
            requests = self._collect()
            if not requests:
                return True
            succeeded = self._exporter.export(requests) is ProfileExportResult.SUCCESS
        except Exception as error:  # an exporter may be anybody's code; the thread must live on
            # The text of a foreign error may hold a header or a URL: its type has to do.
            kind, known = type(error).__name__, self.last_error
            self.last_error = kind
            if kind != known:
                _logger.warning("profiles of one interval are lost: %s raised %s", type(self._exporter).__name__, kind)
            succeeded = False
        if succeeded:
            self.last_error = ""
        self.exported_intervals += succeeded
        self.failed_intervals += not succeeded
        return succeeded
