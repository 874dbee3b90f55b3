"""What is shown, as files in other formats and as text."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams

from ..formats.choice import NAMES as FORMAT_NAMES
from ..formats.choice import named
from ..formats.recording import Recording
from . import markdown
from .exporting import is_full, recording_of_time, recording_of_trace, samples_in
from .looks import STATES
from .reading import Reader
from .selection import CHILDREN, SELF, TRACE, Choice, Chosen, operation_traces, scope_of
from .splits import rounded
from .stack_answers import View, filtered, functions_json
from .trace_answers import found_trace

if TYPE_CHECKING:
    from .reading import TraceData

HTML = "html"
NAMES = (*FORMAT_NAMES, HTML)
MAX_TRACES = 1000  # of one file
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")


def recording_of(connection: sqlite3.Connection, reader: Reader, choice: Choice) -> Recording:
    """The spans and samples of a choice."""
    if choice.trace is not None:
        data = found_trace(connection, reader, choice.trace)
        spans, _, _ = scope_of(data, choice)
        return recording_of_trace(connection, reader, data, spans)
    if choice.operation is not None:
        traces = operation_traces(connection, choice)[:MAX_TRACES]
        whole, samples = Recording(), 0
        for trace_id in traces:
            one = recording_of_trace(connection, reader, found_trace(connection, reader, trace_id), None)
            whole.profiles += one.profiles
            whole.traces += one.traces
            samples += samples_in(one)
            if is_full(samples):
                break
        return whole
    rows = connection.execute(
        "SELECT trace_id FROM trace WHERE start_ns BETWEEN ? AND ? ORDER BY start_ns DESC LIMIT ?",
        (choice.since_ns, choice.until_ns, MAX_TRACES),
    ).fetchall()
    found: Iterator[TraceData] = (found_trace(connection, reader, row[0]) for row in rows)
    return recording_of_time(connection, reader, found, choice.since_ns, choice.until_ns)


def encoded(recording: Recording, form: str, html_of: Callable[[Recording], bytes] | None) -> bytes:
    """The content of the file."""
    if form == HTML:
        if html_of is None:
            raise ValueError("there is no page for it")
        return html_of(recording)
    return named(form).encode(recording, "wall")


def is_cut(choice: Choice, recording: Recording) -> bool:
    """Whether there was more than one file may hold, of which these are the newest."""
    return choice.trace is None and (len(recording.traces) >= MAX_TRACES or is_full(samples_in(recording)))


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
