"""The export thread: collects and exports once per interval, on request, and one last time at the end."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from ._base import ProfileExporter, ProfileExportResult
from ._thread_stack import start_with_room

_logger = logging.getLogger(__name__)

EXIT_TIMEOUT = 5.0  # seconds that the last export of a process may take
FIRST_SETTLE_PAUSE = 0.05  # seconds, doubled each time


class Ending(Protocol):
    """What the thread sleeps by, and how it learns that the process is about to die."""

    def begin(self) -> None:
        """Before the thread starts."""

    def bell(self) -> int:
        """To be read before what the thread waits for is looked at."""

    def ring(self) -> None:
        """Ends a wait."""

    def wait(self, bell: int, seconds: float) -> None:
        """Until the bell is rung after it was read; it may end for no reason."""

    def is_signalled(self) -> bool:
        """Whether the process dies after the next export."""

    def look_after(self) -> None:
        """Between two exports."""

    def hurry(self) -> None:
        """Before the export after which the process dies."""

    def end(self) -> None:
        """After the last export; does not return when the process dies."""


class PeriodicExport:
    """A daemon thread. It holds no lock while it collects or exports, so nobody waits for it longer than he asked."""

    def __init__(
        self,
        collect: Callable[[], list[bytes]],
        exporter: ProfileExporter,
        interval: float,
        prepare_thread: Callable[[], None],
        settle: Callable[[], bool],
        ending: Ending,
    ) -> None:
        self._collect = collect
        self._exporter = exporter
        self._interval = interval
        self._prepare_thread = prepare_thread
        self._settle = settle
        self._ending = ending
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

    def start(self) -> int:
        """Starts the thread and gives the kernel's id of it; RuntimeError when the system gives none."""
        self._ending.begin()
        try:
            start_with_room(self._thread)
        except RuntimeError:
            self._stopping = True  # should it begin after all
            self._ending.end()
            raise
        return self._thread.native_id or 0

    def force_flush(self, timeout: float) -> bool:
        """Has everything seen until now exported; false when that fails or takes longer than timeout seconds."""
        with self._changed:
            self._asked += 1
            wanted = self._asked
            self._ending.ring()
            finished = self._changed.wait_for(lambda: self._done >= wanted or self._ended, timeout)
            return finished and self._done >= wanted and self._last_succeeded

    def stop(self, timeout: float) -> bool:
        """Has the rest exported, once, and ends the thread; false when that fails or takes over timeout seconds."""
        with self._changed:
            self._stopping = True
            self._ending.ring()
            if self._thread is threading.current_thread():  # an exporter or a finalizer: it cannot wait for itself
                return False
            ended = self._changed.wait_for(lambda: self._ended, timeout)
        if ended:
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
                with self._changed:  # held: nothing is taken once stop() has returned, in time or not
                    last, asked = self._stopping, self._asked
                    if not last:
                        self._ending.look_after()
                if self._ending.is_signalled():
                    last = True
                    self._ending.hurry()
                succeeded = self._export_once()
                with self._changed:
                    self._last_succeeded = succeeded
                    self._done = asked
                    self._changed.notify_all()
        finally:
            self._ending.end()
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _wait(self, deadline: float) -> None:
        """Until the deadline, a flush or the end; meanwhile settles what is left of the start, ever more rarely."""
        pause = FIRST_SETTLE_PAUSE
        settled, next_try = False, 0.0
        while True:
            bell = self._ending.bell()
            now = time.monotonic()
            if self._stopping or self._asked > self._done or self._ending.is_signalled() or now >= deadline:
                return
            if not settled and now >= next_try:
                settled = self._try_to_settle()
                next_try = now + pause
                pause *= 2
            self._ending.wait(bell, (deadline if settled else min(deadline, next_try)) - now)

    def _try_to_settle(self) -> bool:
        try:
            return self._settle()
        except Exception:
            _logger.debug("what was left of the start failed", exc_info=True)
            return True

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
