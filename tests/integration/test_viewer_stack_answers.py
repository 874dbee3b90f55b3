"""What the API answers about the stacks of a known recording, number for number; comparisons and exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from recordings import REQUEST, TRACE, recording
from viewer_client import Client, running_viewer
from viewer_recordings import SLOW_TRACE, split, three_traces


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A viewer with three traces of one process."""
    with running_viewer() as found:
        found.load(three_traces())
        yield found


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


def test_stacks_that_are_too_many_are_told_as_a_sum(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the most time are there; times and numbers of the whole stay the same."""
    whole = client.get("/api/stacks")
    monkeypatch.setattr("otel_asyncprof.viewer.selection.MAX_STACKS", 2)
    part = client.get("/api/stacks")
    shared = ("total_us", "samples", "split")
    assert [part[name] for name in shared] == [whole[name] for name in shared]
    assert part["nodes"]["self_us"][0] > whole["nodes"]["self_us"][0] == 0
    assert sum(time > 0 for time in part["nodes"]["self_us"][1:]) == 2
    assert len(part["nodes"]["self_us"]) < len(whole["nodes"]["self_us"])
    assert client.get("/api/functions")["total_us"] == whole["total_us"]


def test_recursion_can_be_folded(client: Client) -> None:
    """On request; without it every call is there."""
    assert client.get("/api/stacks", recursion="0")["total_us"] == client.get("/api/stacks")["total_us"]
    assert client.page("GET", "/api/stacks?recursion=x").status == 400


@pytest.mark.parametrize(
    "view",
    [{}, {"hide": "fetch"}, {"library": "0"}, {"recursion": "0"}, {"state": "waiting,blocked"}, {"weight": "cpu"}],
)
def test_the_table_equals_the_graph(client: Client, view: dict[str, str]) -> None:
    """For those who do not see the graph: each function has the time and the samples of its nodes."""
    for of in ({}, {"trace": TRACE.hex()}, {"trace": SLOW_TRACE.hex()}):
        graph = client.get("/api/stacks", **of, **view, prune=0)
        table = client.get("/api/functions", **of, **view)
        nodes, sums = graph["nodes"], {}
        for index, number in enumerate(nodes["frame"]):
            if number >= 0:
                times = sums.setdefault(tuple(graph["frames"][number][:2]), [0, 0, 0])
                for place, column in enumerate(("total_us", "self_us", "samples")):
                    times[place] += nodes[column][index]
        rows = {
            (row["function"], row["file"]): [row["total_us"], row["self_us"], row["samples"]] for row in table["rows"]
        }
        assert rows == sums
        assert (table["total_us"], table["samples"]) == (graph["total_us"], graph["samples"])


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


def test_markdown_for_an_issue(client: Client) -> None:
    """Scope, samples, split and the functions with the most time."""
    text = client.page("GET", f"/api/markdown?trace={TRACE.hex()}&span={REQUEST.hex()}&scope=children").body.decode()
    assert text.startswith("### GET /orders · 90.0 ms\n")
    assert "waiting 64%" in text
    assert "scope: the span with its children, 10 samples" in text
    assert "| 57.5 ms | 57.5 ms | Connection.fetch |" in text


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
