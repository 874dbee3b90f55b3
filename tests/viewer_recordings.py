"""A recording whose every number is known: a slow request behind one that holds the loop, and a third one."""

from __future__ import annotations

from native_tables import Frame, StackTable
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData
from otlp_requests import ALL, TIME, encode
from recordings import MS, recording, resource, span
from recordings import traces as message_of

from otel_asyncprof.formats.recording import Recording

SLOW_TRACE, HOG_TRACE = b"\x51" * 16, b"\x52" * 16
SERVER, CLIENT = Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT
MAIN = Frame("main", "/app/shop.py", 90, 88)
LIST = Frame("Shop.list", "/app/shop.py", 40, 33)
HOG = Frame("render", "/app/pdf.py", 12, 3)


def in_trace(trace_id: bytes, *spans: Span) -> list[Span]:
    """The spans in another trace."""
    for item in spans:
        item.trace_id = trace_id
    return list(spans)


def spans() -> TracesData:
    """A slow request with six equal queries, and one that holds the loop meanwhile."""
    code = {"code__function__name": "Shop.list", "code__file__path": "/app/shop.py", "code__line__number": 40}
    queries = [
        span(
            bytes([n] * 8),
            "SELECT",
            10 * n,
            10 * n + n,
            kind=CLIENT,
            parent_span_id=b"\x61" * 8,
            db__system="pg",
            **code,
        )
        for n in range(1, 7)
    ]
    for number, query in enumerate(queries):
        query.attributes.add(key="db.statement").value.string_value = f"select * from items where id = {number}"
    root = span(b"\x61" * 8, "GET /items", 0, 200, kind=SERVER, tenant="acme", vip=1)
    root.status.code = root.status.STATUS_CODE_ERROR
    root.status.message = "boom"
    root.events.add(name="exception", time_unix_nano=TIME + 150 * MS)
    return message_of(
        *in_trace(SLOW_TRACE, root, *queries), *in_trace(HOG_TRACE, span(b"\x71" * 8, "GET /pdf", 80, 150, kind=SERVER))
    )


def samples() -> list[ProfilesData]:
    """GET /items: 80 ms waiting, 70 ms ready behind GET /pdf, 40 ms running, the last 10 ms unseen."""
    table = StackTable()
    shared = {"thread_name": "MainThread", "thread_id": 77}
    item = {"link": (SLOW_TRACE, b"\x61" * 8), "task_name": "Task-9", **shared}
    for number in range(19):
        state = "waiting" if number < 8 else "ready" if number < 15 else "running"
        end = TIME + (number + 1) * 10 * MS
        table.add([MAIN, LIST], state=state, wall_ns=10 * MS, time=end, with_event=True, **item)
        if state == "ready":
            hog = {"link": (HOG_TRACE, b"\x71" * 8), "task_name": "Task-8", **shared}
            table.add([MAIN, HOG], state="running", wall_ns=10 * MS, time=end, with_event=True, **hog)
    options = {"attributes": ALL, "timeline": True, "resource": resource().SerializeToString()}
    return [ProfilesData.FromString(request.SerializeToString()) for request in encode(table, **options)]


def three_traces() -> Recording:
    """GET /orders, GET /items and GET /pdf of one process."""
    base = recording()
    return Recording([*base.profiles, *samples()], [*base.traces, spans()])


def split(running: int = 0, waiting: int = 0, ready: int = 0, blocked: int = 0, not_sampled: int = 0) -> dict[str, int]:
    """In milliseconds."""
    values = {"running": running, "waiting": waiting, "ready": ready, "blocked": blocked, "not_sampled": not_sampled}
    return {f"{state}_us": value * 1000 for state, value in values.items()}
