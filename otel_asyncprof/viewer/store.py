"""What has been received: one thread writes, any thread reads."""

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import retention
from .decoding import Batch
from .schema import connect, open_database
from .writing import Writer

MAX_QUEUED = 100_000  # spans and observations that wait to be written: some 35 MB, and a second of writing
MAX_AT_ONCE = 100_000  # of these in one transaction
MAX_READ_SECONDS = 20.0  # of CPU
MAX_READ_WALL_SECONDS = 60.0
MAX_IDLE_READERS = 4
SETTLE_SECONDS = 0.5  # after the last change of a trace its summary is worked out
MAX_UNSETTLED_SECONDS = 2.0  # and so often while more keeps coming
SETTLE_BUDGET_SECONDS = 0.2  # for all of that at once
MAX_SETTLED_AT_ONCE = 50
PRUNE_SECONDS = 20.0
_STEPS = 200_000  # of sqlite's machine between two looks at the clock


@dataclass(frozen=True)
class Limits:
    """How much is kept."""

    size_bytes: int = 512 << 20
    retain_ns: int = 7 * 24 * 3600 * 10**9


class StoreFull(Exception):
    """More arrives than can be written; the sender should try again."""


class Store:
    """A database with a thread that writes it from `start` to `close`."""

    def __init__(self, path: str, limits: Limits | None = None) -> None:
        self.path = path
        self.limits = limits or Limits()
        self.revision = 0
        self.rejected = {"spans": 0, "samples": 0, "requests": 0}
        self.error = ""
        self.settle: Callable[[sqlite3.Connection, int], int] | None = None  # works out summaries; how many
        self._connection = open_database(path)
        self._writer = Writer(self._connection)
        # In memory there is one connection for all; else readers have their own and wait for nobody.
        self._lock = threading.RLock()
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue(MAX_IDLE_READERS)
        self._waiting: list[Batch] = []
        self._n_waiting = 0
        self._changed = threading.Condition()
        self._written = 0  # batches
        self._offered = 0
        self._jobs: list[tuple[Callable[[sqlite3.Connection], None], threading.Event]] = []
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="viewer-store", daemon=True)

    @property
    def in_memory(self) -> bool:
        """Whether all is gone at the end."""
        return self.path == ":memory:"

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def close(self) -> None:
        """Writes what waits, and ends."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()
        self._connection.close()

    def add(self, batch: Batch) -> None:
        """Puts a batch in line; StoreFull when too much waits already."""
        with self._changed:
            if self._waiting and self._n_waiting + batch.size > MAX_QUEUED:
                self.rejected["requests"] += 1
                raise StoreFull
            self.rejected["samples" if batch.samples else "spans"] += batch.rejected
            self._waiting.append(batch)
            self._n_waiting += batch.size
            self._offered += 1
            self._changed.notify_all()

    def flush(self, timeout: float = 30.0) -> bool:
        """Waits until all that was added is written."""
        with self._changed:
            target = self._offered
            return self._changed.wait_for(lambda: self._written >= target, timeout)

    def run(self, job: Callable[[sqlite3.Connection], None]) -> None:
        """Has a change made by the thread that writes, and waits for it; the limits are applied after it."""
        done = threading.Event()
        with self._changed:
            if self._is_closing:
                return
            self._jobs.append((job, done))
            self._changed.notify_all()
        done.wait()

    def clear(self) -> None:
        """Deletes everything."""
        self.run(retention.clear)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection with one unchanging view of the data; sqlite3.OperationalError when a read takes too long."""
        if self.in_memory:
            with self._lock:
                yield self._connection
            return
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = connect(self.path)
            connection.execute("PRAGMA query_only=ON")
        deadline, wall_deadline = time.thread_time() + MAX_READ_SECONDS, time.monotonic() + MAX_READ_WALL_SECONDS
        connection.set_progress_handler(
            lambda: time.thread_time() > deadline or time.monotonic() > wall_deadline, _STEPS
        )
        try:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()

    def _run(self) -> None:
        next_prune = time.monotonic() + PRUNE_SECONDS
        next_settle = time.monotonic() + MAX_UNSETTLED_SECONDS
        is_settled = False
        while True:
            with self._changed:
                timeout = min(PRUNE_SECONDS if is_settled else SETTLE_SECONDS, max(next_prune - time.monotonic(), 0.0))
                self._changed.wait_for(lambda: self._waiting or self._jobs or self._is_closing, timeout)
                batches = self._take()
                jobs, self._jobs = self._jobs, []
                ends = self._is_closing and not self._waiting  # and no job is added any more
            if batches:
                self._attempt(lambda batches=batches: self._write(batches))  # type: ignore[misc]
                is_settled = False
            for job, _ in jobs:
                self._attempt(lambda job=job: job(self._connection))  # type: ignore[misc]
                self._writer.forget()
            if time.monotonic() >= next_prune or jobs:
                self._attempt(self._prune)
                next_prune = time.monotonic() + PRUNE_SECONDS
            if batches or jobs:
                with self._changed:
                    self._written += len(batches)
                    self.revision += 1
                    self._changed.notify_all()
                for _, done in jobs:
                    done.set()
            is_due = not (batches or jobs) or time.monotonic() >= next_settle
            if self.settle is not None and is_due and not is_settled and not ends:
                is_settled = self._attempt(self._settle_some) == 0
                next_settle = time.monotonic() + MAX_UNSETTLED_SECONDS
            if ends:
                return

    def _take(self) -> list[Batch]:
        taken, n = [], 0
        while self._waiting and n < MAX_AT_ONCE:
            taken.append(self._waiting.pop(0))
            n += taken[-1].size
        self._n_waiting -= n
        return taken

    def _attempt(self, step: Callable[[], int | None]) -> int:
        try:
            with self._lock:  # in memory, readers use the same connection
                return step() or 0
        except (sqlite3.Error, OverflowError) as error:
            self.error = f"the database cannot be written: {error}"
            return 0

    def _write(self, batches: list[Batch]) -> None:
        self._writer.write(batches)
        self.error = ""  # only that proves that it can be written again

    def _settle_some(self) -> int:
        assert self.settle is not None
        deadline = time.monotonic() + SETTLE_BUDGET_SECONDS
        settled = 0
        while n := self.settle(self._connection, MAX_SETTLED_AT_ONCE):
            settled += n
            self.revision += 1
            if time.monotonic() > deadline:
                break
        return settled

    def _prune(self) -> None:
        before = time.time_ns() - self.limits.retain_ns
        if retention.prune(self._connection, before_ns=before, limit_bytes=self.limits.size_bytes):
            self._writer.forget()
            self.revision += 1
