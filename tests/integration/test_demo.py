"""The demo: its join of traces and profiles, its receiver, its service, and the whole of it as a command."""

import ast
import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("tortoise", reason="the demo extra is not installed") if not os.environ.get("CI") else None

from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otel_asyncprof.demo.load import drive
from otel_asyncprof.demo.receiver import MAX_BODY_BYTES, Receiver
from otel_asyncprof.demo.report import Report, SlowQuery, make_report, to_json, to_text
from otel_asyncprof.demo.service import SHOP, Service
from otel_asyncprof.demo.telemetry import Frame, SpanId, read_samples, read_spans

TRACE = bytes(range(16))
SERVER, GATHER, QUERY = b"\x01" * 8, b"\x02" * 8, b"\x03" * 8
MAIN, HANDLER, CALLER, DRIVER = (
    Frame("main", "/bin/uvicorn", 8),
    Frame("dashboard", "/app/shop.py", 20),
    Frame("running_total", "/app/shop.py", 7),
    Frame("SqliteClient.execute_query_dict", "/lib/client.py", 150),
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
            tables.function_table.add(name_strindex=string(frame.function), filename_strindex=string(frame.file))
            tables.location_table.add().lines.add(function_index=len(tables.function_table) - 1, line=frame.line)
            indices.append(len(tables.location_table) - 1)
        tables.stack_table.add(location_indices=indices)
        return len(tables.stack_table) - 1

    scope = request.resource_profiles.add().scope_profiles.add()
    cpu, wall = scope.profiles.add(), scope.profiles.add()
    cpu.sample_type.type_strindex, cpu.sample_type.unit_strindex = string("samples"), string("count")
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
    traces = ExportTraceServiceRequest.FromString(trace_request(*spans).SerializeToString())
    profiles = ExportProfilesServiceRequest.FromString(profile_request(*samples).SerializeToString())
    return make_report(read_spans([traces]), read_samples([profiles]), "/app/shop.py")


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
        samples=4,
        linked_share=0.75,
        queries=(
            SlowQuery(
                statement="SELECT 1",
                duration_ms=90.0,
                id=SpanId(TRACE, QUERY),
                request_span="GET /dashboard/{region}",
                caller=CALLER,
                stack=(MAIN, HANDLER, CALLER, DRIVER),
            ),
        ),
    )
    assert report.queries[0].led_back


def test_the_stack_of_a_query_is_where_it_spent_most_time() -> None:
    """Of several stacks with the same link the heaviest one counts, added up over all samples."""
    lock = Frame("Lock.acquire", "/lib/locks.py", 113)
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
    assert (report.linked_share, [(query.caller, query.stack) for query in report.queries]) == (0.5, [(None, ())])
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
    other = Frame("export", "/app/shop.py", 30)
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


def test_the_json_report_has_exactly_the_documented_keys() -> None:
    """The object that `demo --json` prints, value by value."""
    assert to_json(joined(REQUEST_WITH_QUERY, ((MAIN, CALLER, DRIVER), QUERY, 9))) == {
        "traces": 1,
        "spans": 3,
        "samples": 2,
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
        "1 traces with 3 spans, 2 samples, 100% of them linked to one of these spans",
        "",
        "    90.0 ms  SELECT 1",
        "   request  GET /dashboard/{region}   (trace 000102030405060708090a0b0c0d0e0f, span 0303030303030303)",
        "    caller  /app/shop.py:7 running_total",
        "     stack  main (/bin/uvicorn:8)",
        "            running_total (/app/shop.py:7)",
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
    traces, profiles = trace_request(*REQUEST_WITH_QUERY), profile_request(((MAIN, CALLER), QUERY, 9))
    with Receiver() as receiver:
        assert post(receiver, "/v1/traces", traces.SerializeToString()) == 200
        compressed = gzip.compress(profiles.SerializeToString())
        assert post(receiver, "/v1development/profiles", compressed, Content_Encoding="gzip") == 200
    assert (list(receiver.traces), list(receiver.profiles)) == ([traces], [profiles])


def test_the_receiver_refuses_what_it_cannot_read() -> None:
    """Unknown paths, broken bytes and bodies beyond the bound get their status, and nothing is kept."""
    with Receiver() as receiver:
        assert post(receiver, "/v1/logs", b"") == 404
        assert post(receiver, "/v1/traces", b"\xff\xff\xff") == 400
        assert post(receiver, "/v1/traces", b"no gzip", Content_Encoding="gzip") == 400
        assert post(receiver, "/v1/traces", b"", Content_Length=str(MAX_BODY_BYTES + 1)) == 413
        assert post(receiver, "/v1/traces", b"", Content_Length="-1") == 411
    assert (list(receiver.traces), list(receiver.profiles)) == ([], [])


def test_the_shop_knows_nothing_of_tracing_and_profiling() -> None:
    """The service imports neither OpenTelemetry nor this project."""
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name or "").partition(".")[0]
        for node in ast.walk(ast.parse(SHOP.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    standard = {"asyncio", "collections", "contextlib", "csv", "io", "pathlib", "tempfile", "typing"}
    assert imported == standard | {"starlette", "tortoise"}


def test_every_query_of_the_shop_belongs_to_a_request_in_the_traces() -> None:
    """The trace half alone: official instrumentations give each statement a CLIENT span below its SERVER span."""
    with Receiver() as receiver, Service(receiver.endpoint) as service:
        answered = drive(service.url, 2.0)
        service.stop()
    spans = {received.id: received for received in read_spans(receiver.traces)}
    requests = [received for received in spans.values() if received.is_server]
    queries = [received for received in spans.values() if received.is_client and received.parent_id]
    assert (len(requests), all(query.statement for query in queries)) == (answered, True)
    parents = {spans[SpanId(query.id.trace_id, query.parent_id)].name for query in queries}
    assert parents == {"GET /dashboard/{region}", "GET /export/{region}", "GET /orders/{id:int}"}


def shop_processes() -> list[int]:
    """Processes of this machine that run the shop."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"shop:app" in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
        except OSError:
            continue  # it has just ended
    return found


def children_of(process: int) -> list[int]:
    """The shops that a process has started."""
    found = []
    for shop in shop_processes():
        try:
            stat = Path(f"/proc/{shop}/stat").read_text()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == process:
            found.append(shop)
    return found


DEMO = [sys.executable, "-m", "otel_asyncprof.cli", "demo"]


@pytest.fixture(scope="module")
def demo_output() -> subprocess.CompletedProcess[str]:
    """One run of the whole demo."""
    return subprocess.run([*DEMO, "--once", "--json"], capture_output=True, text=True, timeout=60, check=False)


def test_the_demo_leads_every_kind_of_query_back_to_its_request(demo_output: subprocess.CompletedProcess[str]) -> None:
    """Gathered coroutines, task groups, async generators and plain awaits: each with the line that awaits the driver."""
    assert demo_output.returncode == 0, demo_output.stderr
    report = json.loads(demo_output.stdout)
    led_back = {
        (query["caller"].rpartition(":")[2].partition(" ")[2], query["request_span"]) for query in report["queries"]
    }
    assert led_back >= {
        ("running_total", "GET /dashboard/{region}"),
        ("bought_together", "GET /dashboard/{region}"),
        ("product_pages", "GET /export/{region}"),
        ("running_total", "GET /export/{region}"),
    }
    durations = [query["duration_ms"] for query in report["queries"]]
    assert durations == sorted(durations, reverse=True)


def test_the_demo_names_the_line_that_awaits_the_driver(demo_output: subprocess.CompletedProcess[str]) -> None:
    """Each caller is a line of the function that it names, and that line awaits a query."""
    functions = {
        node.name: node for node in ast.walk(ast.parse(SHOP.read_text())) if isinstance(node, ast.AsyncFunctionDef)
    }
    for query in json.loads(demo_output.stdout)["queries"]:
        position, _, function = query["caller"].partition(" ")
        file, _, line = position.rpartition(":")
        awaits = {node.lineno for node in ast.walk(functions[function]) if isinstance(node, ast.Await)}
        assert (file, int(line) in awaits) == (str(SHOP), True), query["caller"]


def test_the_demo_stitches_the_handler_under_its_children(demo_output: subprocess.CompletedProcess[str]) -> None:
    """The stack of a query in a child task holds the handler that awaits it, and the entry of the process, in this order."""
    expected = {
        ("running_total", "GET /dashboard/{region}"): ["dashboard", "running_total"],
        ("bought_together", "GET /dashboard/{region}"): ["dashboard", "bought_together"],
        ("product_pages", "GET /export/{region}"): ["export", "collect", "product_pages"],
        ("running_total", "GET /export/{region}"): ["export", "running_total"],
    }
    seen = {}
    for query in json.loads(demo_output.stdout)["queries"]:
        functions = [frame.partition(" (")[0] for frame in query["stack"] if f"({SHOP}:" in frame]
        seen[functions[-1], query["request_span"]] = functions
        assert query["stack"][0].startswith("<module> "), query["stack"][0]
    assert {key: seen.get(key) for key in expected} == expected


def test_the_demo_fails_with_one_clear_line_when_nothing_is_profiled() -> None:
    """Without profiles no query can be led back: exit status 1, and the reason last."""
    done = subprocess.run(
        [*DEMO, "--once", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"OTEL_ASYNCPROF_ENABLED": "false"},
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["samples"], {query["caller"] for query in report["queries"]}) == (1, 0, {None})
    assert done.stderr.splitlines()[-1].startswith("otel-asyncprof demo: no query could be led back to its request: ")


@pytest.fixture
def running_demo() -> Iterator["subprocess.Popen[str]"]:
    """A demo whose service answers requests."""
    with subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("Sending"):
                    break
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process_behind(
    running_demo: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    """Ctrl-C and SIGTERM end the service too."""
    shops = children_of(running_demo.pid)
    assert len(shops) == 1
    running_demo.send_signal(number)
    running_demo.wait(30)
    deadline = time.monotonic() + 5
    while set(shops) & set(shop_processes()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not set(shops) & set(shop_processes())
