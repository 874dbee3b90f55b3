"""Requests, queries and stacks as lines of text, and as plain data for --json."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..analysis.places import is_library
from ..analysis.split import text_of
from .messages import Style, counted, duration_text, plain

if TYPE_CHECKING:
    from ..analysis.findings import HotStack, Query, SlowSpan
    from ..formats.stack_sample import Frame

MAX_STACK_LINES = 40
_INDENT = " " * 12


def frame_text(frame: "Frame") -> str:
    """A frame as it is shown everywhere."""
    return plain(f"{frame.function} ({frame.file}:{frame.line})" if frame.file else frame.function)


def _frame_lines(frames: "Sequence[Frame]", style: Style) -> list[str]:
    shown = [style.dim(frame_text(frame)) if is_library(frame.file) else frame_text(frame) for frame in frames]
    if len(shown) > MAX_STACK_LINES:
        half = MAX_STACK_LINES // 2
        shown = [*shown[:half], style.dim(f"… {len(shown) - 2 * half} frames …"), *shown[-half:]]
    return [f"{_INDENT}{line}" for line in shown]


def request_lines(requests: "Sequence[SlowSpan]", style: Style) -> list[str]:
    """A line for each request, and one for its time and its trace."""
    lines = []
    for slow in requests:
        queries = f", {counted(slow.n_queries, 'query', 'queries')}" if slow.n_queries else ""
        error = style.red("  error") if slow.span.is_error else ""
        lines.append(f"{duration_text(slow.span.duration_ns):>10}  {style.bold(plain(slow.span.name))}{error}")
        split = text_of(slow.split) or "no samples"
        lines.append(f"{_INDENT}{split}; {counted(slow.n_spans, 'span')}{queries}; trace {slow.span.id.trace_hex}")
    return lines


def query_lines(queries: "Sequence[Query]", style: Style) -> list[str]:
    """For each statement its times, who asked for it, and for which requests."""
    lines = []
    for query in queries:
        p50, p95 = duration_text(query.percentile_ns(0.5)), duration_text(query.percentile_ns(0.95))
        lines.append(f"{duration_text(query.total_ns):>10}  {style.bold(plain(query.statement))}")
        runs = counted(len(query.durations_ns), "run")
        times = f"p50 {p50}, p95 {p95}, slowest {duration_text(query.durations_ns[-1])}"
        many = f"; {query.most_in_one_request} in one request" if query.most_in_one_request > 1 else ""
        lines.append(f"{_INDENT}{runs}, {times}{many}")
        lines += [f"{_INDENT}by {plain(caller)}  ({counted(n, 'run')})" for caller, n in query.callers[:3]]
        lines += [f"{_INDENT}for {plain(name)}  ({counted(n, 'run')})" for name, n in query.requests[:3]]
        lines.append(f"{_INDENT}{style.dim('slowest: trace ' + query.slowest.span.id.trace_hex)}")
    return lines


def stack_lines(stacks: "Sequence[HotStack]", style: Style) -> list[str]:
    """For each stack its times and its frames, root first."""
    lines = []
    for stack in stacks:
        cpu = f", CPU {duration_text(stack.cpu_ns)}" if stack.cpu_ns else ""
        lines.append(f"{duration_text(stack.wall_ns):>10}  {text_of(stack.split)}{cpu}")
        lines += _frame_lines(stack.frames, style)
    return lines


def request_json(slow: "SlowSpan") -> dict[str, Any]:
    """A request as plain data."""
    return {
        "name": slow.span.name,
        "service": slow.span.service,
        "kind": slow.span.kind,
        "trace_id": slow.span.id.trace_hex,
        "span_id": slow.span.id.span_hex,
        "start_unix_nano": slow.span.start_ns,
        "duration_ms": slow.span.duration_ns / 1e6,
        "error": slow.span.is_error,
        "spans": slow.n_spans,
        "queries": slow.n_queries,
        "time_ms": {state: value / 1e6 for state, value in slow.split.items()},
        "caller": str(slow.caller) if slow.caller else None,
    }


def query_json(query: "Query") -> dict[str, Any]:
    """A statement as plain data."""
    slowest = query.slowest
    return {
        "statement": query.statement,
        "runs": len(query.durations_ns),
        "total_ms": query.total_ns / 1e6,
        "p50_ms": query.percentile_ns(0.5) / 1e6,
        "p95_ms": query.percentile_ns(0.95) / 1e6,
        "slowest_ms": query.durations_ns[-1] / 1e6,
        "most_in_one_request": query.most_in_one_request,
        "callers": [{"caller": caller, "runs": n} for caller, n in query.callers],
        "requests": [{"name": name, "runs": n} for name, n in query.requests],
        "slowest": {
            "trace_id": slowest.span.id.trace_hex,
            "span_id": slowest.span.id.span_hex,
            "request": slowest.request.name,
            "caller": str(slowest.caller) if slowest.caller else None,
            "caller_is_exact": slowest.caller.is_exact if slowest.caller else False,
            "stack": [f"{frame.function} ({frame.file}:{frame.line})" for frame in slowest.stack],
        },
    }


def stack_json(stack: "HotStack") -> dict[str, Any]:
    """A stack as plain data."""
    return {
        "wall_ms": stack.wall_ns / 1e6,
        "cpu_ms": stack.cpu_ns / 1e6,
        "time_ms": {state: value / 1e6 for state, value in stack.split.items()},
        "linked_samples": stack.n_linked,
        "frames": [
            {"function": frame.function, "file": frame.file, "line": frame.line, "first_line": frame.first_line}
            for frame in stack.frames
        ],
    }
