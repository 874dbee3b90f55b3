"""What the API answers about a known recording, number for number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from native_tables import Frame, StackTable
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData
from otlp_requests import ALL, TIME, encode
from recordings import MS, QUERY, REQUEST, TRACE, recording, resource, span
from recordings import traces as message_of
from viewer_client import Client, running_viewer

from otel_asyncprof.formats.recording import Recording, read_recording
from otel_asyncprof.formats.stack_sample import stack_samples

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


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A viewer with three traces of one process."""
    with running_viewer() as found:
        base = recording()
        found.load(Recording([*base.profiles, *samples()], [*base.traces, spans()]))
        yield found


def split(running: int = 0, waiting: int = 0, ready: int = 0, blocked: int = 0, not_sampled: int = 0) -> dict[str, int]:
    """In milliseconds."""
    values = {"running": running, "waiting": waiting, "ready": ready, "blocked": blocked, "not_sampled": not_sampled}
    return {f"{state}_us": value * 1000 for state, value in values.items()}


def operations(client: Client, **query: Any) -> list[str]:
    """The operations of the traces listed."""
    return [row["operation"] for row in client.get("/api/traces", **query)["traces"]]


def test_the_slowest_trace_comes_first_with_its_split(client: Client) -> None:
    """Each with its numbers of spans, queries, errors and samples."""
    rows = client.get("/api/traces")["traces"]
    shown = ("operation", "duration_us", "spans", "queries", "errors", "samples", "complete")
    assert [[row[name] for name in shown] for row in rows] == [
        ["GET /items", 200_000, 7, 6, 1, 19, True],
        ["GET /orders", 90_000, 2, 1, 0, 10, True],
        ["GET /pdf", 70_000, 1, 0, 0, 7, True],
    ]
    assert [row["split"] for row in rows] == [
        split(running=40, waiting=80, ready=70, not_sampled=10),
        {"running_us": 10_000, "waiting_us": 57_500, "ready_us": 0, "blocked_us": 12_500, "not_sampled_us": 10_000},
        split(running=70),
    ]
    assert rows[0]["n_plus_one"]["runs"] == 6
    assert rows[0]["trace_id"] == SLOW_TRACE.hex()
    assert rows[1]["n_plus_one"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"service": "shop", "operation": "GET /pdf"}, ["GET /pdf"]),
        ({"service": "other"}, []),
        ({"min_us": 80_000}, ["GET /items", "GET /orders"]),
        ({"max_us": 90_000, "min_us": 71_000}, ["GET /orders"]),
        ({"error": "1"}, ["GET /items"]),
        ({"attribute": "tenant:acme"}, ["GET /items"]),
        ({"attribute": ["tenant:acme", "vip:1"]}, ["GET /items"]),
        ({"attribute": ["tenant:acme", "vip:2"]}, []),
        ({"text": "FROM LINES"}, ["GET /orders"]),
        ({"text": "get /p"}, ["GET /pdf"]),
        ({"function": "render"}, ["GET /pdf"]),
        ({"function": "render", "file": "/elsewhere.py"}, []),
        ({"since_us": TIME // 1000 + 80_000}, ["GET /pdf"]),
        ({"until_us": TIME // 1000, "sort": "duration"}, ["GET /orders", "GET /items"]),
        ({"sort": "-queries", "limit": 1}, ["GET /items"]),
        ({"sort": "-start", "limit": 1, "offset": 0}, ["GET /pdf"]),
        ({"limit": 1, "offset": 1}, ["GET /orders"]),
    ],
)
def test_traces_can_be_chosen(client: Client, query: dict[str, Any], expected: list[str]) -> None:
    """By each filter, in each order."""
    assert operations(client, **query) == expected


def test_the_scatter_and_the_operations_are_of_all_that_match(client: Client) -> None:
    """Whatever the page of the list."""
    found = client.get("/api/traces", limit=1, min_us=80_000)
    assert found["total"] == 2
    assert found["scatter"] == {
        "start_us": [TIME // 1000, TIME // 1000],
        "duration_us": [200_000, 90_000],
        "error": [1, 0],
        "trace_id": [SLOW_TRACE.hex(), TRACE.hex()],
    }
    assert [(item["name"], item["runs"], item["p95_us"]) for item in found["operations"]] == [
        ("GET /items", 1, 200_000),
        ("GET /orders", 1, 90_000),
    ]
    assert client.get("/api/operations", operation="ignored")[2]["name"] == "GET /pdf"


def test_a_trace_has_its_spans_with_splits_callers_and_the_critical_path(client: Client) -> None:
    """The order of a waterfall; exact callers from attributes."""
    trace = client.get(f"/api/traces/{SLOW_TRACE.hex()}")
    spans = trace["spans"]
    assert [(item["name"], item["parent"], item["depth"], item["start_us"]) for item in spans[:3]] == [
        ("GET /items", -1, 0, 0),
        ("SELECT", 0, 1, 10_000),
        ("SELECT", 0, 1, 20_000),
    ]
    assert spans[0]["own"] == {**split(running=40, waiting=80, ready=70), "children_us": 0, "not_sampled_us": 10_000}
    for item in spans:
        assert sum(item["split"].values()) == sum(item["own"].values()) == item["duration_us"]
    assert spans[1]["caller"] == {
        "function": "Shop.list",
        "file": "/app/shop.py",
        "line": 40,
        "first_line": 0,
        "kind": "own",
        "exact": True,
    }
    assert (trace["duration_us"], trace["samples"], trace["period_us"], trace["timeline"]) == (
        200_000,
        19,
        10_000,
        True,
    )
    assert trace["critical_path"] == [0, 1, 2, 3, 4, 5, 6]
    assert trace["n_plus_one"][0]["statement"] == "select * from items where id = ?"


def test_a_caller_without_attributes_is_from_samples(client: Client) -> None:
    """And is marked so."""
    query = client.get(f"/api/traces/{TRACE.hex()}")["spans"][1]
    assert (query["caller"]["function"], query["caller"]["line"], query["caller"]["exact"]) == ("fetch_lines", 7, False)


def test_a_span_in_detail(client: Client) -> None:
    """Attributes, events, status, resource; why it has no stacks."""
    root = client.get(f"/api/traces/{SLOW_TRACE.hex()}/spans/{'61' * 8}")
    assert (root["attributes"], root["status_message"], root["error"]) == ({"tenant": "acme", "vip": 1}, "boom", True)
    assert root["events"] == [{"name": "exception", "at_us": 150_000, "attributes": {}}]
    assert root["resource"] == {"service.name": "shop", "process.pid": 4711}
    assert root["same_operation"] == {"runs": 1, "p50_us": 200_000, "p95_us": 200_000, "max_us": 200_000}
    assert root["thin"] is None
    query = client.get(f"/api/traces/{SLOW_TRACE.hex()}/spans/{'03' * 8}")
    assert query["thin"]["reason"] == "too_short"
    assert (query["thin"]["runs_of_operation"], query["thin"]["runs_with_samples"]) == (6, 0)


def test_the_holder_of_the_loop_is_found_in_the_other_trace(client: Client) -> None:
    """70 ms behind GET /pdf, at its line."""
    for path in (f"/api/holders?trace={SLOW_TRACE.hex()}", f"/api/holders?trace={SLOW_TRACE.hex()}&span={'61' * 8}"):
        found = client.get(path)
        (holder,) = found["holders"]
        assert (found["ready_us"], found["unexplained_us"], holder["us"], holder["share"]) == (70_000, 0, 70_000, 1.0)
        assert (holder["operation"], holder["trace_id"], holder["same_trace"]) == ("GET /pdf", HOG_TRACE.hex(), False)
        assert (holder["caller"]["function"], holder["caller"]["line"], holder["task"]) == ("render", 12, "Task-8")
        assert found["pieces"] == {"start_us": [80_000], "end_us": [150_000], "holder": [0]}
    assert client.get("/api/holders", trace=HOG_TRACE.hex())["holders"] == []


def test_lanes_show_tasks_on_the_traces_axis(client: Client) -> None:
    """Pieces with state, span and stack; the waiting task above the one it waits for."""
    found = client.get(f"/api/traces/{TRACE.hex()}/lanes")
    waiting, child = found["lanes"]
    assert (waiting["name"], waiting["depth"], waiting["awaited_by"]) == ("Task-1", 0, None)
    assert waiting["pieces"]["state"] == ["running", "blocked", "children"]
    assert (child["name"], child["depth"], child["thread"], child["process"]) == ("Task-2", 1, "MainThread", "4711")
    assert child["awaited_by"] == {
        "lane": 0,
        "start_us": 5_000,
        "end_us": 80_000,
        "function": "Shop.handler",
        "file": "/app/shop.py",
        "line": 20,
    }
    assert child["pieces"]["span"] == [1]
    (number,) = child["pieces"]["stack"]
    assert [found["frames"][frame][0] for frame in found["stacks"][number]] == [
        "main",
        "Shop.handler",
        "fetch_lines",
        "Connection.fetch",
    ]


def names_and_times(found: dict[str, Any]) -> list[tuple[str, int]]:
    """The nodes of a tree with their totals."""
    nodes = found["nodes"]
    names = ["" if number < 0 else found["frames"][number][0] for number in nodes["frame"]]
    return list(zip(names, nodes["total_us"], strict=True))


def test_the_three_scopes_of_a_span_fit_together(client: Client) -> None:
    """The span itself, with its children, the whole trace; totals are what the splits say."""
    asked = {"trace": TRACE.hex(), "span": REQUEST.hex()}
    own, tree, whole = (client.get("/api/stacks", **asked, scope=scope) for scope in ("self", "children", "trace"))
    assert [found["samples"] for found in (own, tree, whole)] == [2, 10, 10]
    assert [found["total_us"] for found in (own, tree, whole)] == [40_000, 80_000, 80_000]
    span = client.get(f"/api/traces/{TRACE.hex()}")["spans"][0]
    assert tree["split"] == span["split"]
    assert [name for name, _ in names_and_times(own)] == ["", "main", "Shop.handler", "gefährlich;<b>\u2028</script>"]
    assert names_and_times(tree) == names_and_times(whole)
    assert own["thin"]["reason"] == "few_samples"


def test_a_selection_on_the_time_axis_and_of_a_task_and_of_a_state(client: Client) -> None:
    """What the lanes filter."""
    trace = {"trace": TRACE.hex()}
    assert client.get("/api/stacks", **trace, task="Task-2")["total_us"] == 75_000
    assert client.get("/api/stacks", **trace, weight="task")["total_us"] == 115_000
    assert client.get("/api/stacks", **trace, weight="cpu")["total_us"] == 20_000
    assert client.get("/api/stacks", **trace, state="blocked")["split"] == {
        **split(),
        "blocked_us": 12_500,
        "not_sampled_us": 77_500,
    }
    part = client.get("/api/stacks", **trace, from_us=15_000, to_us=40_000)
    assert (part["duration_us"], part["total_us"]) == (25_000, 25_000)


def test_search_tells_its_share(client: Client) -> None:
    """Stacks with a match, each once."""
    found = client.get("/api/stacks", trace=TRACE.hex(), find="fetch")
    assert found["matches"] == {"nodes": 2, "us": 57_500, "share": 0.7188}
    assert found["find_error"] is None
    assert client.get("/api/stacks", trace=TRACE.hex(), find="fetch(")["find_error"]
    assert client.get("/api/functions", trace=TRACE.hex(), focus="fetch")["total_us"] == 57_500
    hidden = client.get("/api/stacks", trace=TRACE.hex(), hide="Connection|handler", library=1)
    assert names_and_times(hidden)[1:3] == [("main", 80_000), ("fetch_lines", 57_500)]


def test_the_sandwich_of_a_function(client: Client) -> None:
    """Callers above it, callees below, the traces with it."""
    found = client.get("/api/sandwich", trace=TRACE.hex(), function="Shop.handler", file="/app/shop.py")
    assert [name for name, _ in names_and_times(found["callers"])] == ["", "Shop.handler", "main"]
    assert [name for name, _ in names_and_times(found["callees"])][:3] == ["", "Shop.handler", "fetch_lines"]
    assert found["traces"] == [{"trace_id": TRACE.hex(), "operation": "GET /orders", "us": 120_000}]
    assert found["lines"] == [[20, 80_000]]
    assert client.page("GET", "/api/sandwich?function=nobody&file=x").status == 404


def test_statements_are_grouped_with_their_callers(client: Client) -> None:
    """The most time first; exact and sampled callers apart."""
    found = client.get("/api/queries")
    first, second = found["queries"]
    assert (first["statement"], first["runs"], first["total_us"], first["runs_sampled"]) == (
        "SELECT * FROM lines",
        1,
        80_000,
        1,
    )
    assert (second["statement"], second["system"]) == ("select * from items where id = ?", "pg")
    measures = ("runs", "total_us", "p50_us", "p95_us", "max_us", "runs_exact", "runs_sampled", "runs_unknown")
    assert [second[name] for name in measures] == [6, 21_000, 3_000, 6_000, 6_000, 6, 0, 0]
    assert second["n_plus_one"]["runs"] == 6
    assert second["operations"] == [{"service": "shop", "name": "GET /items", "runs": 6}]
    assert [query["runs"] for query in client.get("/api/queries", sort="-runs")["queries"]] == [6, 1]
    assert client.get("/api/queries", text="ITEMS")["total"] == 1
    assert client.get("/api/queries", operation="GET /orders")["queries"][0]["statement"] == "SELECT * FROM lines"


def test_one_statement_in_detail(client: Client) -> None:
    """All callers, the slowest runs, what was sent."""
    number = client.get("/api/queries", text="items")["queries"][0]["query_id"]
    found = client.get(f"/api/queries/{number}")
    (caller,) = found["all_callers"]
    assert (caller["caller"]["exact"], caller["runs"], caller["total_us"], caller["p95_us"]) == (True, 6, 21_000, 6_000)
    assert caller["slowest"] == {"trace_id": SLOW_TRACE.hex(), "span_id": "06" * 8, "duration_us": 6_000}
    assert found["example"] == "select * from items where id = 5"
    assert [run["duration_us"] for run in found["slowest"]] == [6_000, 5_000, 4_000, 3_000, 2_000, 1_000]
    assert sum(bucket["runs"] for bucket in found["histogram"]) == 6
    assert client.page("GET", "/api/queries/999").status == 404


def test_two_sides_are_compared_per_run(client: Client) -> None:
    """A span with a trace, and an operation's slow with its fast runs."""
    found = client.get("/api/compare", a=f"span:{TRACE.hex()}:{REQUEST.hex()}", b=f"trace:{SLOW_TRACE.hex()}")
    assert (found["a"]["label"], found["b"]["label"]) == ("GET /orders", "GET /items")
    assert (found["a"]["mean_us"], found["b"]["mean_us"]) == (90_000, 200_000)
    assert found["b"]["split"] == split(running=40, waiting=80, ready=70, not_sampled=10)
    assert (found["a"]["queries_per_run"], found["b"]["queries_per_run"]) == (1, 6)
    assert found["nodes"]["a_us"][0] == 80_000
    assert found["nodes"]["b_us"][0] == 190_000
    assert found["holders"]["b"][0]["operation"] == "GET /pdf"
    assert found["attributes"][0] == {"key": "tenant", "value": "acme", "a_share": 0.0, "b_share": 1.0}
    parts = client.get("/api/compare", a="op:shop/GET /items@fast", b="op:shop/GET /items@slow")
    assert (parts["a"]["runs"], parts["b"]["label"]) == (1, "GET /items, p95 and more")
    assert client.page("GET", "/api/compare?a=query:99&b=query:1").status == 404


@pytest.mark.parametrize("form", ["otlp", "otlp-json", "pprof", "speedscope", "collapsed", "chrome", "gecko", "html"])
def test_a_trace_can_be_exported_in_each_format(client: Client, form: str) -> None:
    """As a file with a name."""
    reply = client.page("GET", f"/api/export?format={form}&trace={TRACE.hex()}")
    assert reply.status == 200
    assert f"asyncprof-{TRACE.hex()}." in reply.headers["content-disposition"]
    assert len(reply.body) > 200


def test_what_is_exported_is_what_came_in(client: Client) -> None:
    """Stacks, links, states, times and spans: imported elsewhere, all answers are the same."""
    exported = client.page("GET", f"/api/export?format=otlp-json&trace={TRACE.hex()}&scope=trace").body
    again = read_recording(exported)
    before = {
        (s.frames, s.state, s.task_name, s.span_id, s.cpu_ns, s.wall_ns, s.timestamps) for s in linked(recording())
    }
    assert {
        (s.frames, s.state, s.task_name, s.span_id, s.cpu_ns, s.wall_ns, s.timestamps) for s in linked(again)
    } == before
    with running_viewer(grpc_port=None, http_port=None) as other:
        other.load(again)
        path = f"/api/traces/{TRACE.hex()}"
        assert other.get(path)["spans"] == client.get(path)["spans"]
        assert other.get(f"{path}/lanes") == client.get(f"{path}/lanes")


def linked(found: Recording) -> list[Any]:
    """The samples of TRACE."""
    samples = stack_samples(message.SerializeToString() for message in found.profiles)
    return [sample for sample in samples if sample.trace_id == int.from_bytes(TRACE)]


def test_one_span_can_be_exported_alone(client: Client) -> None:
    """Its samples and itself."""
    path = f"/api/export?format=otlp-json&trace={TRACE.hex()}&span={QUERY.hex()}"
    found = read_recording(client.page("GET", path).body)
    assert {sample.span_id for sample in linked(found)} == {int.from_bytes(QUERY)}
    assert [s.name for t in found.traces for r in t.resource_spans for o in r.scope_spans for s in o.spans] == [
        "SELECT orders"
    ]


def test_markdown_for_an_issue(client: Client) -> None:
    """Scope, samples, split and the functions with the most time."""
    text = client.page("GET", f"/api/markdown?trace={TRACE.hex()}&span={REQUEST.hex()}&scope=children").body.decode()
    assert text.startswith("### GET /orders · 90.0 ms\n")
    assert "waiting 64%" in text
    assert "scope: the span with its children, 10 samples" in text
    assert "| 57.5 ms | 57.5 ms | Connection.fetch |" in text


def test_an_answer_that_has_not_changed_is_not_sent_again(client: Client) -> None:
    """304 for the tag of the last one; the status is always sent."""
    first = client.page("GET", "/api/traces")
    again = client.page("GET", "/api/traces", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert "etag" not in client.page("GET", "/api/status").headers


def test_large_answers_are_compressed(client: Client) -> None:
    """Where the client takes gzip."""
    import gzip

    reply = client.page("GET", f"/api/traces/{SLOW_TRACE.hex()}", Accept_Encoding="gzip")
    assert reply.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(reply.body))["samples"] == 19


def test_changes_are_told_as_they_come(client: Client) -> None:
    """Server-sent events: the first one at once."""
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(client.viewer.page_address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.readline() == b"event: change\n"
    change = json.loads(answer.readline().removeprefix(b"data: "))
    assert change["traces"] == 3
    assert change["newest_us"] == TIME // 1000 + 80_000
    connection.close()


def test_without_a_timeline_splits_are_shares_and_that_is_said() -> None:
    """60 ms of tasks side by side in 90 ms; no lanes."""
    with running_viewer(grpc_port=None, http_port=None) as other:
        other.load(recording(timeline=False))
        trace = other.get(f"/api/traces/{TRACE.hex()}")
        assert trace["timeline"] is False
        for item in trace["spans"]:
            assert sum(item["split"].values()) == item["duration_us"]
        assert trace["spans"][1]["split"] == split(waiting=80)
        root = other.get(f"/api/stacks?trace={TRACE.hex()}&scope=trace")
        assert root["total_us"] == 90_000
        assert other.get(f"/api/traces/{TRACE.hex()}/lanes")["lanes"] == []
