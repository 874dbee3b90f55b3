"""The tables, and connections to them."""

import sqlite3
from pathlib import Path

VERSION = 2  # of the tables; a database of another version is made anew
BUSY_SECONDS = 10.0

# Indices that end in _runs and _sums hold all that answers add up, so that these read no rows, which are large.
_TABLES = """
CREATE TABLE resource(id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL UNIQUE, service TEXT NOT NULL);
CREATE TABLE query(id INTEGER PRIMARY KEY AUTOINCREMENT, statement TEXT NOT NULL, system TEXT NOT NULL,
    UNIQUE(statement, system));
CREATE TABLE frame(id INTEGER PRIMARY KEY AUTOINCREMENT, function TEXT NOT NULL, file TEXT NOT NULL,
    line INTEGER NOT NULL, first_line INTEGER NOT NULL, UNIQUE(function, file, line, first_line));
CREATE INDEX frame_file ON frame(file);
CREATE TABLE stack(id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE, frames BLOB NOT NULL);
CREATE TABLE span(trace_id BLOB NOT NULL, span_id BLOB NOT NULL, parent_id BLOB, resource INTEGER NOT NULL,
    name TEXT NOT NULL, kind INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
    error INTEGER NOT NULL, query INTEGER, caller INTEGER, sampled_caller INTEGER,
    PRIMARY KEY(trace_id, span_id)) WITHOUT ROWID;
CREATE INDEX span_runs ON span(query, start_ns, end_ns, error, resource, caller, sampled_caller, parent_id)
    WHERE query IS NOT NULL;
CREATE INDEX span_name ON span(name, resource);
CREATE TABLE detail(trace_id BLOB NOT NULL, span_id BLOB NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY(trace_id, span_id)) WITHOUT ROWID;
CREATE TABLE trace(trace_id BLOB PRIMARY KEY, root BLOB NOT NULL, operation TEXT NOT NULL, service TEXT NOT NULL,
    start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, spans INTEGER NOT NULL,
    errors INTEGER NOT NULL, queries INTEGER NOT NULL, samples INTEGER NOT NULL, complete INTEGER NOT NULL,
    summary TEXT) WITHOUT ROWID;
CREATE INDEX trace_runs ON trace(service, operation, duration_ns, start_ns, errors);
CREATE INDEX trace_duration ON trace(duration_ns, start_ns, errors);
CREATE INDEX trace_sums ON trace(spans, samples);
CREATE INDEX trace_operation ON trace(trace_id, operation);
CREATE INDEX trace_start ON trace(start_ns, queries);
CREATE INDEX trace_end ON trace(end_ns);
CREATE INDEX trace_unsettled ON trace(trace_id) WHERE summary IS NULL;
CREATE TABLE sample(id INTEGER PRIMARY KEY, trace_id BLOB, span_id BLOB, resource INTEGER NOT NULL,
    stack INTEGER NOT NULL, state TEXT NOT NULL, task TEXT NOT NULL, thread TEXT NOT NULL, thread_id INTEGER NOT NULL,
    first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, n INTEGER NOT NULL, wall_ns INTEGER NOT NULL,
    cpu_ns INTEGER NOT NULL, wall BLOB NOT NULL, cpu BLOB NOT NULL);
CREATE INDEX sample_span ON sample(trace_id, span_id, n) WHERE trace_id IS NOT NULL;
CREATE INDEX sample_time ON sample(resource, last_ns);
CREATE INDEX sample_sums ON sample(stack, state, wall_ns, cpu_ns, n, last_ns, resource);
"""
NAMES = ("resource", "query", "frame", "stack", "span", "detail", "trace", "sample")


def connect(path: str) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=OFF")
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


def open_database(path: str) -> sqlite3.Connection:
    """The writer's connection, with all tables in place; sqlite3.Error when there can be none."""
    if path != ":memory:":
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    connection = connect(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if version != VERSION:
        if tables and not set(NAMES) <= tables:
            connection.close()
            raise sqlite3.DatabaseError("it is a database of something else")
        for name in NAMES:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        if tables:
            connection.execute("VACUUM")
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(_TABLES)
        connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("PRAGMA journal_mode=WAL")
    return connection
