"""The demo's join of traces and profiles, and its receiver, on messages as they come off the wire."""

import gzip
import http.client
from urllib.parse import urlsplit

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otel_asyncprof.demo.receiver import MAX_BODY_BYTES, Receiver
from otel_asyncprof.demo.report import Report, SlowQuery, make_report, to_json, to_text
from otel_asyncprof.demo.telemetry import SpanId, read_spans
from otel_asyncprof.formats.stack_sample import Frame, stack_samples

TRACE = bytes(range(16))
SERVER, GATHER, QUERY = b"\x01" * 8, b"\x02" * 8, b"\x03" * 8
MAIN, HANDLER, CALLER, DRIVER = (
    Frame("main", "/bin/uvicorn", 8, 1),
    Frame("dashboard", "/app/shop.py", 20, 1),
    Frame("running_total", "/app/shop.py", 7, 1),
    Frame("SqliteClient.execute_query_dict", "/lib/client.py", 150, 1),
)


def trace_request(*spans: Span) -> ExportTraceServiceRequest:
    """One export of these spans."""
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(spans)
    return request


def span(
    span_id: bytes, name: str, kind: "Span.SpanKind.ValueType", *, parent: bytes = b"", ms: int = 100, sql: str = ""
) -> Span:
    """A span of TRACE that took so many milliseconds."""
    made = Span(trace_id=TRACE, span_id=span_id, parent_span_id=parent, name=name, kind=kind)
    made.start_time_unix_nano, made.end_time_unix_nano = 10**18, 10**18 + ms * 10**6
    if sql:
        made.attributes.add(key="db.statement").value.string_value = sql
    return made


def profile_request(*samples: tuple[tuple[Frame, ...], bytes | None, int]) -> ExportProfilesServiceRequest:
    """One wall profile of (stack root first, span id or None, ns), and a CPU profile with the first sample's stack."""
    request = ExportProfilesServiceRequest()
    tables = request.dictionary
    tables.mapping_table.add()
    tables.location_table.add()
    tables.function_table.add()
    tables.link_table.add()
    tables.attribute_table.add()
    tables.stack_table.add()
    tables.string_table.append("")

    def string(text: str) -> int:
        if text not in tables.string_table:
            tables.string_table.append(text)
        return list(tables.string_table).index(text)

    def stack(frames: tuple[Frame, ...]) -> int:
        indices = []
        for frame in reversed(frames):
            tables.function_table.add(
                name_strindex=string(frame.function), filename_strindex=string(frame.file), start_line=1
            )
            tables.location_table.add().lines.add(function_index=len(tables.function_table) - 1, line=frame.line)
            indices.append(len(tables.location_table) - 1)
        tables.stack_table.add(location_indices=indices)
        return len(tables.stack_table) - 1

    scope = request.resource_profiles.add().scope_profiles.add()
    cpu, wall = scope.profiles.add(), scope.profiles.add()
    cpu.sample_type.type_strindex, cpu.sample_type.unit_strindex = string("samples"), string("count")
    cpu.period_type.type_strindex, cpu.period = string("cpu"), 10**7
    wall.period_type.type_strindex, wall.period = string("wall"), 10**7
    wall.sample_type.type_strindex, wall.sample_type.unit_strindex = string("wall"), string("nanoseconds")
    for frames, span_id, wall_ns in samples:
        link = 0
        if span_id is not None:
            tables.link_table.add(trace_id=TRACE, span_id=span_id)
            link = len(tables.link_table) - 1
        wall.samples.add(stack_index=stack(frames), link_index=link, values=[wall_ns])
    cpu.samples.add(stack_index=1, link_index=wall.samples[0].link_index, timestamps_unix_nano=[10**18, 10**18 + 10**7])
    return request


def joined(spans: list[Span], *samples: tuple[tuple[Frame, ...], bytes | None, int]) -> Report:
    """The report of these spans and samples, as they come off the wire."""
    traces, profiles = trace_request(*spans).SerializeToString(), profile_request(*samples).SerializeToString()
    return make_report(read_spans([traces]), stack_samples([profiles]), "/app/shop.py")


REQUEST_WITH_QUERY = [
    span(QUERY, "SELECT", Span.SPAN_KIND_CLIENT, parent=GATHER, ms=90, sql="SELECT\n  1"),
    span(GATHER, "gather", Span.SPAN_KIND_INTERNAL, parent=SERVER),
    span(SERVER, "GET /dashboard/{region}", Span.SPAN_KIND_SERVER),
]


def test_a_query_is_led_back_to_request_and_caller_by_ids_alone() -> None:
    """The parent ids give the request, the link gives the stack, the stack gives the caller."""
    report = joined(
        REQUEST_WITH_QUERY,
        ((MAIN, HANDLER, CALLER, DRIVER), QUERY, 9),
        ((MAIN, HANDLER), SERVER, 5),
        ((MAIN,), None, 99),
    )
    assert report == Report(
        traces=1,
        spans=3,
        samples=3,
        linked_share=2 / 3,
        queries=(
            SlowQuery(
                statement="SELECT 1",
                duration_ms=90.0,
                id=SpanId(int.from_bytes(TRACE), int.from_bytes(QUERY)),
                request_span="GET /dashboard/{region}",
                caller=CALLER,
                stack=(MAIN, HANDLER, CALLER, DRIVER),
            ),
        ),
    )
    assert report.queries[0].led_back


def test_the_stack_of_a_query_is_where_it_spent_most_time() -> None:
    """Of several stacks with the same link the heaviest one counts, added up over all samples."""
    lock = Frame("Lock.acquire", "/lib/locks.py", 113, 1)
    report = joined(
        REQUEST_WITH_QUERY,
        ((MAIN, CALLER, lock), QUERY, 50),
        ((MAIN, CALLER, DRIVER), QUERY, 40),
        ((MAIN, CALLER, DRIVER), QUERY, 20),
    )
    assert [query.stack for query in report.queries] == [(MAIN, CALLER, DRIVER)]


def test_samples_of_other_spans_lead_nowhere() -> None:
    """A sample of the request, of a span that never arrived, or of none says nothing about a query."""
    report = joined(
        REQUEST_WITH_QUERY, ((MAIN, HANDLER), SERVER, 5), ((MAIN, CALLER), b"\x09" * 8, 5), ((MAIN, CALLER), None, 5)
    )
    assert (report.linked_share, [(query.caller, query.stack) for query in report.queries]) == (1 / 3, [(None, ())])
    assert not report.queries[0].led_back


def test_a_query_whose_request_did_not_arrive_is_not_led_back() -> None:
    """A missing parent ends the climb; a root query, as at start-up, belongs to no request and is left out."""
    orphan = joined(REQUEST_WITH_QUERY[:1], ((MAIN, CALLER), QUERY, 1))
    root = joined([span(QUERY, "CREATE", Span.SPAN_KIND_CLIENT, sql="CREATE TABLE t (a)")], ((MAIN, CALLER), QUERY, 1))
    assert [(query.request_span, query.led_back) for query in orphan.queries] == [(None, False)]
    assert root.queries == ()


def test_a_cycle_of_parents_ends() -> None:
    """Spans that name each other as parents end the climb at its bound."""
    spans = [
        span(QUERY, "SELECT", Span.SPAN_KIND_CLIENT, parent=GATHER, sql="SELECT 1"),
        span(GATHER, "gather", Span.SPAN_KIND_INTERNAL, parent=QUERY),
    ]
    assert [query.request_span for query in joined(spans, ((MAIN,), None, 1)).queries] == [None]


def test_the_slowest_query_of_each_statement_request_and_caller_is_listed() -> None:
    """Repetitions and fast queries are left out; one statement called from two places is listed twice."""
    other = Frame("export", "/app/shop.py", 30, 1)
    spans = [span(SERVER, "GET /", Span.SPAN_KIND_SERVER)] + [
        span(bytes([number]) * 8, "SELECT", Span.SPAN_KIND_CLIENT, parent=SERVER, ms=ms, sql="SELECT 1")
        for number, ms in ((2, 60), (3, 80), (4, 70), (5, 49))
    ]
    report = joined(
        spans,
        ((CALLER,), b"\x02" * 8, 1),
        ((CALLER,), b"\x03" * 8, 1),
        ((other,), b"\x04" * 8, 1),
        ((other,), b"\x05" * 8, 1),
    )
    assert [(query.duration_ms, query.caller) for query in report.queries] == [(80.0, CALLER), (70.0, other)]


def test_a_query_in_no_sample_is_left_out_beside_the_same_one_that_is_led_back() -> None:
    """A pause of the sampler hides one run; another one of the same request tells."""
    spans = [span(SERVER, "GET /", Span.SPAN_KIND_SERVER)] + [
        span(bytes([number]) * 8, "SELECT", Span.SPAN_KIND_CLIENT, parent=SERVER, ms=ms, sql=sql)
        for number, ms, sql in ((2, 60, "SELECT 1"), (3, 80, "SELECT 1"), (4, 70, "SELECT 2"))
    ]
    report = joined(spans, ((CALLER,), b"\x02" * 8, 1))
    assert [(query.statement, query.duration_ms) for query in report.queries] == [
        ("SELECT 2", 70.0),
        ("SELECT 1", 60.0),
    ]


def test_the_json_report_has_exactly_the_documented_keys() -> None:
    """The object that `demo --json` prints, value by value."""
    assert to_json(joined(REQUEST_WITH_QUERY, ((MAIN, CALLER, DRIVER), QUERY, 9))) == {
        "traces": 1,
        "spans": 3,
        "samples": 1,
        "linked_share": 1.0,
        "queries": [
            {
                "statement": "SELECT 1",
                "duration_ms": 90.0,
                "trace_id": "000102030405060708090a0b0c0d0e0f",
                "span_id": "0303030303030303",
                "request_span": "GET /dashboard/{region}",
                "caller": "/app/shop.py:7 running_total",
                "stack": [
                    "main (/bin/uvicorn:8)",
                    "running_total (/app/shop.py:7)",
                    "SqliteClient.execute_query_dict (/lib/client.py:150)",
                ],
            }
        ],
    }


def test_the_text_report_shows_query_request_caller_and_stack() -> None:
    """The report for people, line by line."""
    assert to_text(joined(REQUEST_WITH_QUERY, ((MAIN, CALLER), QUERY, 9))).splitlines() == [
        "1 traces with 3 spans, 1 samples, 100% of them linked to one of these spans",
        "",
        "    90.0 ms  SELECT 1",
        "   request  GET /dashboard/{region}   (trace 000102030405060708090a0b0c0d0e0f, span 0303030303030303)",
        "    caller  /app/shop.py:7 running_total",
        "     stack  main (/bin/uvicorn:8)",
        "           >running_total (/app/shop.py:7)",
    ]


def post(receiver: Receiver, path: str, body: bytes, **headers: str) -> int:
    """The status with which the receiver answers."""
    connection = http.client.HTTPConnection(urlsplit(receiver.endpoint).netloc, timeout=10)
    try:
        connection.request(
            "POST", path, body, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_receiver_keeps_what_it_is_sent_plain_and_compressed() -> None:
    """Traces and profiles arrive as they were sent."""
    traces = trace_request(*REQUEST_WITH_QUERY).SerializeToString()
    profiles = profile_request(((MAIN, CALLER), QUERY, 9)).SerializeToString()
    with Receiver() as receiver:
        assert post(receiver, "/v1/traces", traces) == 200
        compressed = gzip.compress(profiles)
        assert post(receiver, "/v1development/profiles", compressed, Content_Encoding="gzip") == 200
    assert (receiver.traces, receiver.profiles) == ([traces], [profiles])


def test_what_has_arrived_can_be_read_while_more_arrives() -> None:
    """The page's demo reports while the shop goes on sending."""
    request = ExportTraceServiceRequest().SerializeToString()
    with Receiver() as receiver:
        assert post(receiver, "/v1/traces", request) == 200
        for number, received in enumerate(receiver.traces):
            assert (number, received) == (0, request)
            assert post(receiver, "/v1/traces", request) == 200
        assert receiver.traces == [request] * 2


def test_the_receiver_refuses_what_it_cannot_read() -> None:
    """Unknown paths, broken bytes and bodies beyond the bound get their status, and nothing is kept."""
    with Receiver() as receiver:
        assert post(receiver, "/v1/logs", b"") == 404
        assert post(receiver, "/v1/traces", b"\xff\xff\xff") == 400
        assert post(receiver, "/v1/traces", b"no gzip", Content_Encoding="gzip") == 400
        assert post(receiver, "/v1/traces", b"", Content_Length=str(MAX_BODY_BYTES + 1)) == 413
        assert post(receiver, "/v1/traces", b"", Content_Length="-1") == 411
    assert (receiver.traces, receiver.profiles) == ([], [])
