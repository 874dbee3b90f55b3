"""What the viewer gives away: exports, Markdown, and answers that are compressed, unchanged or told as they come."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from otlp_requests import TIME
from recordings import QUERY, REQUEST, TRACE, recording
from viewer_client import Client, running_viewer
from viewer_recording import SLOW_TRACE, viewer_of_three_traces

from otel_asyncprof.formats.recording import Recording, read_recording
from otel_asyncprof.formats.stack_sample import stack_samples


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A viewer with three traces of one process."""
    with viewer_of_three_traces() as found:
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
