"""Writes batches into the tables, and keeps the row of each trace up to date."""

import sqlite3
from array import array
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from ..formats.stack_sample import Frame
from .decoding import Batch, NewSample, NewSpan

MAX_KNOWN = 50_000  # entries of each table whose numbers are kept in memory

_SPAN = """INSERT OR REPLACE INTO span(trace_id, span_id, parent_id, resource, name, kind, start_ns, end_ns, error,
    query, caller, sampled_caller) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"""
_DETAIL = "INSERT OR REPLACE INTO detail(trace_id, span_id, content) VALUES (?, ?, ?)"
_SAMPLE = """INSERT INTO sample(trace_id, span_id, resource, stack, state, task, thread, thread_id, first_ns, last_ns,
    n, wall_ns, cpu_ns, wall, cpu) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
# The span without a parent, else the first whose parent is not there, else the first.
_ROOT = """SELECT s.span_id, s.name, r.service, s.start_ns, s.end_ns, s.parent_id FROM span s
    JOIN resource r ON r.id = s.resource WHERE s.trace_id = :trace ORDER BY s.parent_id IS NOT NULL,
    EXISTS(SELECT 1 FROM span p WHERE p.trace_id = :trace AND p.span_id = s.parent_id), s.start_ns, s.span_id LIMIT 1"""
_SUMS = """SELECT COUNT(*), SUM(error), SUM(query IS NOT NULL), MAX(end_ns) FROM span WHERE trace_id = ?"""
_TRACE = """INSERT OR REPLACE INTO trace(trace_id, root, operation, service, start_ns, end_ns, duration_ns, spans,
    errors, queries, samples, complete, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"""

_UNSETTLE = "UPDATE span SET sampled_caller = NULL WHERE trace_id = ? AND sampled_caller IS NOT NULL"


class Writer:
    """Used by one thread. Keeps the numbers of what recurs."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._resources: dict[str, int] = {}
        self._queries: dict[tuple[str, str], int] = {}
        self._frames: dict[Frame, int] = {}
        self._stacks: dict[bytes, int] = {}  # by their digests
        self._same: dict[int, int] = {}  # by the identity of a tuple of frames, while its batch is written

    def forget(self) -> None:
        """After entries have been deleted their numbers must not be used again."""
        for known in (self._resources, self._queries, self._frames, self._stacks):
            known.clear()

    def write(self, batches: Iterable[Batch]) -> None:
        """All in one transaction; nothing is written when it fails."""
        kept = list(batches)
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            spans = [span for batch in kept for span in batch.spans]
            samples = [sample for batch in kept for sample in batch.samples]
            connection.executemany(_SPAN, [self._span(span) for span in spans])
            connection.executemany(_DETAIL, [(span.trace_id, span.span_id, span.details) for span in spans])
            connection.executemany(_SAMPLE, [self._sample(sample) for sample in samples])
            touched = {span.trace_id for span in spans} | {sample.trace_id for sample in samples if sample.trace_id}
            self._update_traces(touched)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            self.forget()
            raise
        finally:
            self._same.clear()

    def _span(self, span: NewSpan) -> tuple[object, ...]:
        query = None
        if span.statement is not None:
            query = self._query(span.statement, span.system)
        return (
            span.trace_id,
            span.span_id,
            span.parent_id,
            self._resource(span.resource, span.service),
            span.name,
            span.kind,
            span.start_ns,
            span.end_ns,
            span.is_error,
            query,
            self._frame(span.caller) if span.caller else None,
        )

    def _sample(self, sample: NewSample) -> tuple[object, ...]:
        return (
            sample.trace_id,
            sample.span_id,
            self._resource(sample.resource, sample.service),
            self._stack(sample.frames),
            sample.state,
            sample.task,
            sample.thread,
            sample.thread_id,
            sample.first_ns,
            sample.last_ns,
            sample.n,
            sample.wall_ns,
            sample.cpu_ns,
            sample.wall_at.tobytes(),
            sample.cpu_at.tobytes(),
        )

    def _update_traces(self, traces: Iterable[bytes]) -> None:
        for trace_id in traces:
            root = self._connection.execute(_ROOT, {"trace": trace_id}).fetchone()
            if root is None:  # samples came before their spans
                continue
            span_id, name, service, start, end, parent = root
            spans, errors, queries, last = self._connection.execute(_SUMS, (trace_id,)).fetchone()
            samples = self._connection.execute(
                "SELECT COALESCE(SUM(n), 0) FROM sample WHERE trace_id = ?", (trace_id,)
            ).fetchone()[0]
            row = (trace_id, span_id, name, service, start, last, max(end - start, 0), spans, errors, queries, samples)
            self._connection.execute(_TRACE, (*row, parent is None))
            self._connection.execute(_UNSETTLE, (trace_id,))

    def _resource(self, content: str, service: str) -> int:
        number = self._resources.get(content)
        if number is None:
            number = self._number(
                "INSERT INTO resource(content, service) VALUES (?, ?) ON CONFLICT DO UPDATE SET service = service "
                "RETURNING id",
                (content, service),
            )
            _keep(self._resources, content, number)
        return number

    def _query(self, statement: str, system: str) -> int:
        key = (statement, system)
        number = self._queries.get(key)
        if number is None:
            number = self._number(
                "INSERT INTO query(statement, system) VALUES (?, ?) ON CONFLICT DO UPDATE SET system = system "
                "RETURNING id",
                key,
            )
            _keep(self._queries, key, number)
        return number

    def _frame(self, frame: Frame) -> int:
        number = self._frames.get(frame)
        if number is None:
            number = self._number(
                "INSERT INTO frame(function, file, line, first_line) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET line = line RETURNING id",
                (frame.function, frame.file, frame.line, frame.first_line),
            )
            _keep(self._frames, frame, number)
        return number

    def _stack(self, frames: tuple[Frame, ...]) -> int:
        number = self._same.get(id(frames))
        if number is not None:
            return number
        packed = array("I", map(self._frame, frames)).tobytes()
        digest = blake2b(packed, digest_size=16).digest()
        number = self._stacks.get(digest)
        if number is None:
            number = self._number(
                "INSERT INTO stack(digest, frames) VALUES (?, ?) ON CONFLICT DO UPDATE SET digest = digest "
                "RETURNING id",
                (digest, packed),
            )
            _keep(self._stacks, digest, number)
        self._same[id(frames)] = number
        return number

    def _number(self, statement: str, values: tuple[object, ...]) -> int:
        number: int = self._connection.execute(statement, values).fetchone()[0]
        return number


def _keep(known: dict[Any, int], key: Any, number: int) -> None:
    if len(known) >= MAX_KNOWN:
        known.clear()
    known[key] = number
