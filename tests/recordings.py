"""Recordings for tests of formats and commands: bytes of the real encoder, and spans that fit them."""

from __future__ import annotations

from native_tables import Frame, StackTable
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData
from otlp_requests import ALL, PERIOD, TIME, encode

from otel_asyncprof.formats.recording import Recording

MS = 1_000_000
TRACE = bytes(range(1, 17))
REQUEST, QUERY = b"\x0a" * 8, b"\x0b" * 8
MAIN = Frame("main", "/app/shop.py", 90, 88)
HANDLER = Frame("Shop.handler", "/app/shop.py", 20, 15)
FETCH = Frame("fetch_lines", "/app/orders.py", 7, 5)
DRIVER = Frame("Connection.fetch", "/env/lib/python3.12/site-packages/driver/connection.py", 690, 680)
ODD = Frame("gefährlich;<b>\u2028</script>", "/app/ö dir/a.py", 3, 1)


def resource(service: str = "shop", pid: int = 4711) -> Resource:
    """The resource of one process."""
    return Resource(
        attributes=[
            KeyValue(key="service.name", value=AnyValue(string_value=service)),
            KeyValue(key="process.pid", value=AnyValue(int_value=pid)),
        ]
    )


def table() -> StackTable:
    """A query that waits under a request, the request's own work, work that is late, and a thread without a task."""
    made = StackTable()
    shared = {"thread_name": "MainThread", "thread_id": 77, "local_root_name": "GET /orders"}
    for number in range(8):
        end = TIME + (number + 1) * 10 * MS
        made.add(
            [MAIN, HANDLER, FETCH, DRIVER],
            link=(TRACE, QUERY),
            task_name="Task-2",
            state="waiting",
            wall_ns=10 * MS,
            time=end,
            with_event=True,
            **shared,
        )
    running = {"link": (TRACE, REQUEST), "task_name": "Task-1", "cpu_periods": 1, "period_ns": PERIOD, **shared}
    made.add([MAIN, HANDLER], state="running", wall_ns=15 * MS, time=TIME + 15 * MS, with_event=True, **running)
    made.add([MAIN, HANDLER, ODD], state="blocked", wall_ns=25 * MS, time=TIME + 40 * MS, with_event=True, **running)
    idle = {"thread_name": "pool-0", "thread_id": 78, "state": "waiting"}
    made.add([Frame("worker", "/app/pool.py", 4, 2)], wall_ns=80 * MS, time=TIME + 80 * MS, with_event=True, **idle)
    return made


def profiles(*, timeline: bool = True, **of_process: object) -> list[ProfilesData]:
    """The messages of one process."""
    options = {"attributes": ALL, "timeline": timeline, "resource": resource(**of_process).SerializeToString()}  # type: ignore[arg-type]
    return [ProfilesData.FromString(request.SerializeToString()) for request in encode(table(), **options)]


def span(span_id: bytes, name: str, begin_ms: int, end_ms: int, **fields: object) -> Span:
    """A span of TRACE at these times after the profile's start; attributes as keyword arguments with __ for dots."""
    made = Span(trace_id=TRACE, span_id=span_id, name=name)
    made.start_time_unix_nano, made.end_time_unix_nano = TIME + begin_ms * MS, TIME + end_ms * MS
    for key, value in fields.items():
        if key in ("kind", "parent_span_id"):
            setattr(made, key, value)
            continue
        attribute = made.attributes.add(key=key.replace("__", "."))
        if isinstance(value, int):
            attribute.value.int_value = value
        else:
            attribute.value.string_value = str(value)
    return made


def traces(*spans: Span, service: str = "shop") -> TracesData:
    """One export of these spans; by default a request with one query."""
    chosen = spans or (
        span(REQUEST, "GET /orders", 0, 90, kind=Span.SPAN_KIND_SERVER),
        span(
            QUERY,
            "SELECT orders",
            5,
            85,
            kind=Span.SPAN_KIND_CLIENT,
            parent_span_id=REQUEST,
            db__query__text="SELECT *\n  FROM lines",
        ),
    )
    scopes = [ScopeSpans(spans=chosen)]
    return TracesData(resource_spans=[ResourceSpans(resource=resource(service), scope_spans=scopes)])


def recording(**options: object) -> Recording:
    """Profiles and traces of one process."""
    return Recording(profiles(**options), [traces()])  # type: ignore[arg-type]
