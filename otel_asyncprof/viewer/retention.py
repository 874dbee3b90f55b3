"""Old data make room: by age, and when the database has grown too large."""

import sqlite3
from array import array

SHARE = 0.1  # of the time that is kept, which goes when there is too much


def used_bytes(connection: sqlite3.Connection) -> int:
    """What the stored data need; pages that are free again do not count."""
    values = [
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    ]
    return int((values[0] - values[1]) * values[2])


def prune(connection: sqlite3.Connection, *, before_ns: int, limit_bytes: int) -> bool:
    """Deletes what ended before a time, and more while there is too much; whether anything was deleted."""
    changed = _delete_before(connection, before_ns)
    while used_bytes(connection) > limit_bytes:
        cutoff = _oldest_part(connection)
        if cutoff is None or not _delete_before(connection, cutoff):
            break
        changed = True
    if changed:
        _give_back(connection)
    return changed


def clear(connection: sqlite3.Connection) -> None:
    """Deletes all that was received."""
    connection.execute("BEGIN IMMEDIATE")
    for name in ("sample", "trace", "detail", "span", "stack", "frame", "query", "resource"):
        connection.execute(f"DELETE FROM {name}")
    connection.execute("COMMIT")
    _give_back(connection)


def _give_back(connection: sqlite3.Connection) -> None:
    """Makes the file as small as its content. execute() of Python 3.11 gives back one page only."""
    connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")


def _oldest_part(connection: sqlite3.Connection) -> int | None:
    """A time before which a tenth of all traces has ended; of samples, if there are no traces."""
    for table, column in (("trace", "end_ns"), ("sample", "last_ns")):
        n = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        if n:
            row = connection.execute(
                f"SELECT {column} FROM {table} ORDER BY {column} LIMIT 1 OFFSET ?", (min(int(n * SHARE), n - 1),)
            ).fetchone()
            return int(row[0]) + 1
    return None


def _delete_before(connection: sqlite3.Connection, time_ns: int) -> bool:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TEMP TABLE old(trace_id BLOB PRIMARY KEY) WITHOUT ROWID")
        connection.execute("INSERT INTO old SELECT trace_id FROM trace WHERE end_ns < ?", (time_ns,))
        before = connection.total_changes
        connection.execute("DELETE FROM span WHERE trace_id IN (SELECT trace_id FROM old)")
        connection.execute("DELETE FROM detail WHERE trace_id IN (SELECT trace_id FROM old)")
        connection.execute("DELETE FROM sample WHERE trace_id IN (SELECT trace_id FROM old)")
        # Without a trace here: of no span, or of one that never came.
        connection.execute(
            "DELETE FROM sample WHERE last_ns < ? AND "
            "(trace_id IS NULL OR trace_id NOT IN (SELECT trace_id FROM trace))",
            (time_ns,),
        )
        connection.execute("DELETE FROM trace WHERE trace_id IN (SELECT trace_id FROM old)")
        changed = connection.total_changes > before
        connection.execute("DROP TABLE old")
        if changed:
            _delete_unused(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return changed


def _delete_unused(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM stack WHERE NOT EXISTS (SELECT 1 FROM sample WHERE sample.stack = stack.id)")
    connection.execute("DELETE FROM query WHERE NOT EXISTS (SELECT 1 FROM span WHERE span.query = query.id)")
    connection.execute(
        "DELETE FROM resource WHERE id NOT IN (SELECT resource FROM span UNION SELECT resource FROM sample)"
    )
    connection.execute("CREATE TEMP TABLE used(frame INTEGER PRIMARY KEY)")
    frames: set[int] = set()
    for (packed,) in connection.execute("SELECT frames FROM stack"):
        frames.update(array("I", packed))
    connection.executemany("INSERT INTO used VALUES (?)", [(frame,) for frame in frames])
    for name in ("caller", "sampled_caller"):
        connection.execute(f"INSERT OR IGNORE INTO used SELECT DISTINCT {name} FROM span WHERE {name} IS NOT NULL")
    connection.execute("DELETE FROM frame WHERE id NOT IN (SELECT frame FROM used)")
    connection.execute("DROP TABLE used")
