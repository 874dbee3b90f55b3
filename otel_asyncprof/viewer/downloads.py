"""What is shown, as files in other formats and as text."""

import re
import sqlite3
from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams

from ..formats.choice import NAMES as FORMAT_NAMES
from ..formats.choice import named
from ..formats.recording import Recording
from . import exporting, markdown
from .exporting import Limits, Rows, recording_of
from .looks import STATES
from .reading import Reader
from .selection import (
    CHILDREN,
    OF_SERVICE,
    QUERY_RUNS,
    SELF,
    TRACE,
    Choice,
    Chosen,
    NothingThere,
    limits_of,
    operation_traces,
    rows_of,
    scope_of,
)
from .splits import rounded
from .stack_answers import View, filtered, functions_json
from .trace_answers import found_trace

HTML = "html"
NAMES = (*FORMAT_NAMES, HTML)
MAX_TRACES = 1000  # of one file
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")


class Export:
    """The spans and samples of a choice, as one file may hold them: of too many the newest."""

    def __init__(self, connection: sqlite3.Connection, reader: Reader, choice: Choice) -> None:
        self._connection, self._reader = connection, reader
        self.most_traces, self.most_samples = MAX_TRACES, exporting.MAX_SAMPLES_OF_MANY
        limits, values = limits_of(choice)
        self._limits = Limits()
        self._traces: list[bytes]
        if choice.trace is not None:
            self.most_traces, self.most_samples = 1, exporting.MAX_SAMPLES
            self._traces = [choice.trace]
            self._limits = self._limits_in_trace(choice)
        elif choice.operation is not None:
            self._traces = operation_traces(connection, choice, MAX_TRACES + 1)
        else:
            source, where, values = rows_of(choice)
            self._rows = Rows(source, where, values, self.most_samples)
            self._traces = self._newest_traces(choice)
            return
        self._rows = Rows("sample p", f"p.trace_id IN ({_listed(self._traces)}){limits}", values, self.most_samples)

    def _limits_in_trace(self, choice: Choice) -> Limits:
        assert choice.trace is not None
        data = found_trace(self._connection, self._reader, choice.trace)
        spans, begin, end = scope_of(data, choice)
        return Limits(
            span=None if spans is None else lambda span, _resource: span in spans,
            samples_by_span=True,
            begin_ns=None if choice.from_ns is None else begin,
            end_ns=None if choice.to_ns is None else end,
        )

    def _newest_traces(self, choice: Choice) -> list[bytes]:
        values: dict[str, Any] = {"since": choice.since_ns, "until": choice.until_ns, "most": MAX_TRACES + 1}
        if choice.query is not None:
            values["query"] = choice.query
            which = f"trace_id IN (SELECT s.trace_id FROM span s WHERE {QUERY_RUNS})"
        else:
            which = "start_ns BETWEEN :since AND :until"
            if choice.service is not None:
                values["service"] = choice.service
                resources = {row[0] for row in self._connection.execute(OF_SERVICE, {"service": choice.service})}
                self._limits = Limits(span=lambda _span, resource: resource in resources)
                which += (
                    " AND EXISTS(SELECT 1 FROM span s WHERE s.trace_id = trace.trace_id "
                    f"AND s.resource IN ({OF_SERVICE}))"
                )
        newest = f"SELECT trace_id FROM trace WHERE {which} ORDER BY start_ns DESC LIMIT :most"
        traces = [row[0] for row in self._connection.execute(newest, values)]
        if choice.query is not None:
            if not traces:
                raise NothingThere("no run of this statement is stored")
            runs = f"SELECT s.span_id FROM span s WHERE {QUERY_RUNS} AND s.trace_id IN ({_listed(traces)})"
            spans = {row[0] for row in self._connection.execute(runs, values)}
            self._limits = Limits(span=lambda span, _resource: span in spans)
        return traces

    def is_cut(self) -> bool:
        """Whether there is more than a file may hold."""
        return len(self._traces) > self.most_traces or self._rows.are_more(self._connection)

    def recording(self) -> Recording:
        """What the file holds."""
        found = (found_trace(self._connection, self._reader, one) for one in self._traces[: self.most_traces])
        return recording_of(self._connection, self._reader, self._rows, found, self._limits)

    def extent(self) -> dict[str, Any]:
        """What is told before someone asks for the file."""
        return {"cut": self.is_cut(), "most_traces": self.most_traces, "most_samples": self.most_samples}


def _listed(traces: list[bytes]) -> str:
    """For SQL."""
    return ", ".join(f"x'{trace.hex()}'" for trace in traces)


def encoded(recording: Recording, form: str, html_of: Callable[[Recording], bytes] | None) -> bytes:
    """The content of the file."""
    if form == HTML:
        if html_of is None:
            raise ValueError("there is no page for it")
        return html_of(recording)
    return named(form).encode(recording, "wall")


def file_name(query: QueryParams, form: str, cut: bool) -> str:
    """A name that says what is in it."""
    suffix = ".html" if form == HTML else named(form).suffixes[0]
    given = (query.get(name, "")[:32] for name in ("trace", "span", "operation"))
    parts = ["asyncprof", "newest" if cut else "", *given]
    return "-".join(_UNSAFE.sub("-", part).strip("-") for part in parts if part) + suffix


def markdown_of(connection: sqlite3.Connection, reader: Reader, choice: Choice, found: Chosen, view: View) -> str:
    """The choice for people."""
    title, lines, scope = "Profile", [], "everything stored"
    duration = found.duration_ns or round(sum(weight.total for weight in found.weights.values()))
    if choice.trace is not None:
        data = found_trace(connection, reader, choice.trace)
        whole = choice.span is None or choice.scope == TRACE
        index = 0 if choice.span is None else data.index_of[choice.span]
        row = data.spans[index].row
        title = f"{row.name} · {markdown.duration(data.times[index].duration_ns / 1000)}"
        lines = [f"service {markdown.plain(row.service)}, trace {choice.trace.hex()}, span {row.span_id.hex()}"]
        if row.statement:
            lines.append(f"statement {markdown.plain(row.statement, 500)}")
        scope = (
            "the whole trace"
            if whole
            else {SELF: "the span itself", CHILDREN: "the span with its children"}[choice.scope]
        )
    elif choice.operation is not None:
        title, scope = choice.operation[1], f"{found.runs} runs ({choice.at})"
    elif choice.query is not None:
        statement = connection.execute("SELECT statement FROM query WHERE id = ?", (choice.query,)).fetchone()
        title, scope = (statement[0] if statement else "query"), f"{found.runs} runs"
    states = [0.0] * len(STATES)
    for weight in found.weights.values():
        states = [one + other for one, other in zip(states, weight.states, strict=True)]
    split = rounded(dict(zip(STATES, states, strict=True)), duration)
    functions = functions_json(found, filtered(found, view), view)
    return markdown.summary(title, lines, split, functions, scope)
