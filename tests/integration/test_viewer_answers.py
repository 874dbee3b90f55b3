"""What the API answers about a known recording, number for number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from otlp_requests import TIME
from recordings import REQUEST, TRACE, recording
from viewer_client import Client, running_viewer
from viewer_recording import HOG_TRACE, SLOW_TRACE, viewer_of_three_traces


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A viewer with three traces of one process."""
    with viewer_of_three_traces() as found:
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


DECLARED = Path(__file__).parents[2] / "web" / "src" / "api.ts"


def declared(name: str) -> set[str]:
    """The properties of an interface of the page, with those that it extends."""
    text = DECLARED.read_text()
    found = re.search(rf"export interface {name} (?:extends (\w+) )?\{{\n(.*?)^\}}", text, re.DOTALL | re.MULTILINE)
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
    columns = re.findall(r"^    (\w+): .+\[\];", DECLARED.read_text(), re.MULTILINE)
    assert set(stacks["nodes"]) | set(compared["nodes"]) | set(lanes["lanes"][0]["pieces"]) <= {*columns, "parent"}
