"""What the API answers about a known recording, number for number: traces, spans, tasks, statements."""

from __future__ import annotations

import gzip
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from otlp_requests import TIME
from recordings import TRACE
from viewer_client import Client, running_viewer
from viewer_recordings import HOG_TRACE, SLOW_TRACE, split, three_traces

API = Path(__file__).parents[2] / "web" / "src" / "api"
DECLARED = "".join(file.read_text() for file in sorted(API.glob("*.ts")))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A viewer with three traces of one process."""
    with running_viewer() as found:
        found.load(three_traces())
        yield found


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


def test_an_answer_that_has_not_changed_is_not_sent_again(client: Client) -> None:
    """304 for the tag of the last one; the status is always sent."""
    first = client.page("GET", "/api/traces")
    again = client.page("GET", "/api/traces", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert "etag" not in client.page("GET", "/api/status").headers


def test_large_answers_are_compressed(client: Client) -> None:
    """Where the client takes gzip."""
    reply = client.page("GET", f"/api/traces/{SLOW_TRACE.hex()}", Accept_Encoding="gzip")
    assert reply.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(reply.body))["samples"] == 19


def test_changes_are_told_as_they_come(client: Client) -> None:
    """Server-sent events: the first one at once."""
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


def declared(name: str) -> set[str]:
    """The properties of an interface of the page, with those that it extends."""
    found = re.search(rf"export interface {name} (?:extends (\w+) )?\{{\n(.*?)^\}}", DECLARED, re.DOTALL | re.MULTILINE)
    assert found, name
    own = set(re.findall(r"^  (\w+): ", found[2], re.MULTILINE))
    return own | (declared(found[1]) if found[1] else set())


def test_answers_have_the_properties_that_the_page_is_promised(client: Client) -> None:
    """Each interface in api.ts, neither more nor less."""
    trace = client.get(f"/api/traces/{SLOW_TRACE.hex()}")
    lanes = client.get(f"/api/traces/{TRACE.hex()}/lanes")
    stacks = client.get("/api/stacks", trace=TRACE.hex())
    queries = client.get("/api/queries")
    query = client.get(f"/api/queries/{queries['queries'][0]['query_id']}")
    compared = client.get("/api/compare", a=f"trace:{TRACE.hex()}", b=f"trace:{SLOW_TRACE.hex()}")
    traces = client.get("/api/traces")
    holders = client.get("/api/holders", trace=SLOW_TRACE.hex())
    detail = client.get(f"/api/traces/{SLOW_TRACE.hex()}/spans/{'03' * 8}")
    functions = client.get("/api/functions", trace=TRACE.hex())
    answers = {
        "Status": client.get("/api/status"),
        "TraceList": traces,
        "TraceRow": traces["traces"][0],
        "NPlusOne": traces["traces"][0]["n_plus_one"],
        "Operation": traces["operations"][0],
        "Trace": trace,
        "Span": trace["spans"][0],
        "Split": trace["spans"][0]["split"],
        "OwnSplit": trace["spans"][0]["own"],
        "SpanDetail": detail,
        "Thin": detail["thin"],
        "Stacks": stacks,
        "Functions": functions,
        "FunctionRow": functions["rows"][0],
        "Sandwich": client.get("/api/sandwich", trace=TRACE.hex(), function="main", file="/app/shop.py"),
        "Queries": queries,
        "Query": queries["queries"][0],
        "QueryDetail": query,
        "QueryCaller": query["all_callers"][0],
        "QueryRun": query["slowest"][0],
        "Caller": query["all_callers"][0]["caller"],
        "Lanes": lanes,
        "Lane": lanes["lanes"][1],
        "Holders": holders,
        "Holder": holders["holders"][0],
        "Frame": holders["holders"][0]["caller"],
        "Comparison": compared,
        "Side": compared["a"],
    }
    assert {name: set(answer) for name, answer in answers.items()} == {name: declared(name) for name in answers}
    columns = re.findall(r"^    (\w+): .+\[\];", DECLARED, re.MULTILINE)
    assert set(stacks["nodes"]) | set(compared["nodes"]) | set(lanes["lanes"][0]["pieces"]) <= {*columns, "parent"}
