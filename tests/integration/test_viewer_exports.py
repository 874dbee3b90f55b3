"""What files of an export hold: all that is selected, or of too much the newest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from recordings import QUERY, TRACE, recording
from viewer_client import Client, running_viewer
from viewer_recordings import three_traces

from otel_asyncprof.formats.recording import Recording, read_recording
from otel_asyncprof.formats.stack_sample import stack_samples
from otel_asyncprof.viewer.looks import STATES


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A viewer with three traces of one process."""
    with running_viewer() as found:
        found.load(three_traces())
        yield found


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


def test_an_export_of_everything_holds_the_newest_samples(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts as at once, all that was sent is there; of too many some are left out, as the name says."""

    def told(found: Recording) -> set[Any]:
        samples = stack_samples(message.SerializeToString() for message in found.profiles)
        return {(s.frames, s.state, s.task_name, s.span_id, s.cpu_ns, s.wall_ns, s.timestamps) for s in samples}

    names, cut = [], []

    def exported() -> set[Any]:
        reply = client.page("GET", "/api/export?format=otlp-json")
        names.append(reply.headers["content-disposition"])
        cut.append(client.get("/api/export/extent")["cut"])
        return told(read_recording(reply.body))

    whole = exported()
    assert told(recording()) <= whole
    monkeypatch.setattr("otel_asyncprof.viewer.exporting.ROWS_AT_ONCE", 3)
    assert exported() == whole
    monkeypatch.setattr("otel_asyncprof.viewer.exporting.MAX_SAMPLES_OF_MANY", 4)
    assert len(exported()) == 4
    assert exported() < whole
    assert ["newest" in name for name in names] == [False, False, True, True]
    assert cut == [False, False, True, True]
    assert client.get("/api/export/extent") == {"cut": True, "most_traces": 1000, "most_samples": 4}
    assert client.get("/api/export/extent", trace=TRACE.hex())["cut"] is False


def test_an_export_of_just_what_fits_is_not_called_cut(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored sample with CPU and wall time is one; traces have a limit of their own."""
    stored = sum(1 for sample in exported_samples(client, "") if sample.wall_ns)
    monkeypatch.setattr("otel_asyncprof.viewer.exporting.MAX_SAMPLES_OF_MANY", stored)
    assert client.get("/api/export/extent")["cut"] is False
    monkeypatch.setattr("otel_asyncprof.viewer.downloads.MAX_TRACES", 2)
    assert client.get("/api/export/extent") == {"cut": True, "most_traces": 2, "most_samples": stored}
    assert client.get("/api/export/extent", operation="shop/GET /items")["cut"] is False


@pytest.mark.parametrize(
    "choice",
    [
        {"service": "shop"},
        {"query": 1},
        {"state": "waiting,ready"},
        {"task": "Task-1"},
        {"operation": "shop/GET /items", "at": "slow", "state": "running"},
        {"trace": TRACE.hex(), "scope": "trace", "from_us": 20_000, "to_us": 60_000},
        {"trace": TRACE.hex(), "scope": "trace", "state": "blocked"},
    ],
    ids=lambda choice: "-".join(choice),
)
def test_what_is_exported_is_what_is_shown(client: Client, choice: dict[str, Any]) -> None:
    """The time on each stack, by state: of the file as of the page."""
    found = client.get("/api/functions", weight="task", **choice)
    sums: dict[str, int] = {}
    for sample in exported_samples(client, urlencode(choice)):
        sums[sample.state] = sums.get(sample.state, 0) + sample.wall_ns // 1000
    assert sum(sums.values()) == found["total_us"] > 0
    shown = client.get("/api/stacks", weight="task", **choice)["nodes"]
    assert {state: us for state in STATES if (us := shown[f"{state}_us"][0])} == {s: us for s, us in sums.items() if us}


def exported_samples(client: Client, query: str) -> list[Any]:
    """What the file of a choice holds."""
    found = read_recording(client.page("GET", f"/api/export?format=otlp-json&{query}").body)
    return list(stack_samples(message.SerializeToString() for message in found.profiles))


def test_spans_in_an_export_are_those_of_the_service_or_the_query(client: Client) -> None:
    """Beside the samples."""

    def spans(**choice: Any) -> set[str]:
        found = read_recording(client.page("GET", f"/api/export?format=otlp-json&{urlencode(choice)}").body)
        return {s.name for t in found.traces for r in t.resource_spans for o in r.scope_spans for s in o.spans}

    query = client.get("/api/queries")["queries"][0]
    assert spans(query=query["query_id"]) < spans()
    assert spans(service="shop") == spans()
    assert client.page("GET", "/api/export?format=otlp-json&service=none").body == b""


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
