"""How much is stored."""

import sqlite3
import time

SHARE = 0.05  # of the time may go into counting: where much is stored, a number that is a little older is told
CHEAP_SECONDS = 0.01  # of CPU: as often as somebody asks

_COUNTS = {
    "spans": "SELECT COALESCE(SUM(spans), 0) FROM trace",
    "traces": "SELECT COUNT(*) FROM trace",
    "samples": "SELECT COALESCE(SUM(n), 0) FROM sample",
    "linked_samples": "SELECT COALESCE(SUM(samples), 0) FROM trace",
}


def counted(connection: sqlite3.Connection) -> dict[str, int]:
    """Spans, traces, observations, and those of traces that are here."""
    return {name: connection.execute(statement).fetchone()[0] for name, statement in _COUNTS.items()}


class Counts:
    """The numbers of the last count, for as long as another would cost too much."""

    def __init__(self) -> None:
        self.known: tuple[int, float, dict[str, int]] | None = None  # revision, good until, numbers

    def now(self, connection: sqlite3.Connection, revision: int) -> dict[str, int]:
        """The numbers of a revision, or of one shortly before it."""
        known = self.known
        if known is not None and (known[0] == revision or time.monotonic() < known[1]):
            return known[2]
        begun = time.thread_time()
        numbers = counted(connection)
        cost = time.thread_time() - begun
        self.known = revision, time.monotonic() + (cost / SHARE if cost > CHEAP_SECONDS else 0), numbers
        return numbers
