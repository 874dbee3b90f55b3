"""`run --view`: a real program with known times, and every number that the viewer says about it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from integration.command_line import COMMAND, PROGRAMS, TIMEOUT_SECONDS, environment

from otel_asyncprof.formats.process_profile import process_profiles
from otel_asyncprof.formats.recording import read_recording

PROGRAM = PROGRAMS / "timed_request.py"
SHARE = 0.1


class Seen:
    """What the program measured, and what the viewer says."""

    def __init__(self, page: str, measured: dict[str, float]) -> None:
        self.page = page
        self.measured = {name: seconds * 1e6 for name, seconds in measured.items()}
        traces = self.get("/api/traces")["traces"]
        self.row = next(row for row in traces if row["operation"] == "GET /orders")
        self.trace_id = self.row["trace_id"]
        self.trace = self.get(f"/api/traces/{self.trace_id}")
        self.root = self.trace["spans"][0]
        self.lanes = self.get(f"/api/traces/{self.trace_id}/lanes")
        # At each end of a time the profiler may not look for as long as it was kept from its work.
        self.gap = self.longest_gap()

    def get(self, path: str, **query: Any) -> Any:
        """What the API answers."""
        address = f"{self.page}{path}" + (f"?{urlencode(query)}" if query else "")
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
            return json.load(answer)

    def longest_gap(self) -> int:
        """The longest time between two looks, from the weights in the exported profile."""
        query = urlencode({"format": "otlp-json", "trace": self.trace_id, "scope": "trace"})
        with urllib.request.urlopen(f"{self.page}/api/export?{query}", timeout=TIMEOUT_SECONDS) as answer:
            processes = process_profiles(read_recording(answer.read()).profiles)
        return max(weight for found in processes for timed in found.samples for _, weight in timed.wall_at) // 1000

    def is_near(self, micros: float, expected: float, more: float = 0.0) -> bool:
        """Within a tenth, or what lies between two looks at either end where these were far apart."""
        slack = max(SHARE * expected, 4 * self.gap)
        return expected - slack - more <= micros <= expected + slack + more


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """One run, looked at while `run --view` waits for Ctrl-C."""
    folder = tmp_path_factory.mktemp("view")
    errors = folder / "stderr"
    with errors.open("w") as stderr:
        command = [*COMMAND, "run", "--view", "--service-name", "shop", str(PROGRAM)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment(), text=True)
        try:
            assert process.stdout is not None
            measured = json.loads(process.stdout.readline())
            yield Seen(address_in(errors, process), measured)
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_SECONDS) == 5, errors.read_text()  # the program's own
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def address_in(errors: Path, process: subprocess.Popen[str]) -> str:
    """The page's address, once everything has been sent to it."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for line in errors.read_text().splitlines():
            if line.endswith("(Ctrl-C ends)"):
                return line.split()[2]
        time.sleep(0.05)
    raise AssertionError(errors.read_text())


def test_the_split_of_the_request_is_what_the_program_measured(seen: Seen) -> None:
    """Running, blocked, waiting and ready; all together the whole duration."""
    split, measured = seen.root["split"], seen.measured
    stolen = measured["ran"] - measured["cpu"]  # while it could run, but had no CPU
    assert sum(split.values()) == seen.root["duration_us"]
    assert seen.is_near(seen.root["duration_us"], sum(measured.values()) - measured["cpu"])
    assert seen.is_near(split["running_us"], measured["cpu"], stolen)
    assert seen.is_near(split["blocked_us"], measured["blocked"], stolen)
    assert seen.is_near(split["running_us"] + split["blocked_us"], measured["ran"] + measured["blocked"])
    assert seen.is_near(split["waiting_us"], measured["waited"] + measured["queried"])
    assert seen.is_near(split["ready_us"], measured["ready"])
    assert split["not_sampled_us"] <= max(SHARE * seen.root["duration_us"], 4 * seen.gap)
    assert seen.row["split"] == split
    assert seen.is_near(seen.root["cpu_us"], measured["cpu"])


def test_what_is_of_the_request_itself_and_what_is_its_queries(seen: Seen) -> None:
    """Two queries side by side are their longer one, once."""
    own, measured = seen.root["own"], seen.measured
    assert sum(own.values()) == seen.root["duration_us"]
    assert seen.is_near(own["children_us"], measured["queried"])
    assert seen.is_near(own["waiting_us"], measured["waited"])
    queries = seen.trace["spans"][1:]
    assert len(queries) == 2
    for query in queries:
        assert sum(query["split"].values()) == query["duration_us"]
        assert seen.is_near(query["split"]["waiting_us"], query["duration_us"])


def test_the_flame_graph_adds_up_to_the_split(seen: Seen) -> None:
    """Each scope has its own total; the functions on it are those of the program."""
    asked = {"trace": seen.trace_id, "span": seen.root["span_id"]}
    tree, own = (seen.get("/api/stacks", **asked, scope=scope) for scope in ("children", "self"))
    sampled = seen.root["duration_us"] - seen.root["split"]["not_sampled_us"]
    assert abs(tree["total_us"] - sampled) <= 4
    assert tree["split"] == seen.root["split"]
    assert own["total_us"] < tree["total_us"]
    rows = {row["function"]: row for row in seen.get("/api/functions", **asked, scope="children")["rows"]}
    assert seen.is_near(rows["burn"]["total_us"], seen.measured["ran"])
    assert seen.is_near(rows["query"]["total_us"], seen.measured["queried"])
    assert seen.is_near(rows["request"]["total_us"], seen.root["duration_us"])


def test_the_callers_of_the_query_are_exact_and_right(seen: Seen) -> None:
    """The line in the program that runs it."""
    (query,) = seen.get("/api/queries")["queries"]
    assert (query["statement"], query["runs"], query["runs_exact"]) == ("SELECT * FROM lines WHERE order_id = ?", 2, 2)
    durations = sorted(span["duration_us"] for span in seen.trace["spans"][1:])
    assert [query[name] for name in ("p50_us", "p95_us", "max_us")] == [durations[0], durations[1], durations[1]]
    assert abs(query["total_us"] - sum(durations)) <= 1
    (caller,) = query["callers"]
    lines = PROGRAM.read_text().splitlines()
    assert (caller["caller"]["file"], caller["caller"]["function"]) == (str(PROGRAM), "query")
    assert "start_as_current_span" in lines[caller["caller"]["line"] - 1]


def test_the_loop_was_held_by_the_other_request(seen: Seen) -> None:
    """For as long as this one was ready; at the line that burns."""
    found = seen.lanes["holders"]
    assert seen.is_near(found["ready_us"], seen.measured["ready"])
    assert sum(holder["us"] for holder in found["holders"]) + found["unexplained_us"] <= found["ready_us"] + 1
    worst = found["holders"][0]
    assert (worst["operation"], worst["same_trace"], worst["caller"]["function"]) == ("GET /report", False, "burn")
    assert worst["us"] >= found["ready_us"] - max(SHARE * found["ready_us"], 4 * seen.gap)


def test_the_queries_are_tasks_for_which_the_request_waits(seen: Seen) -> None:
    """Lanes of their own under the one of the request, at the line of its gather."""
    request, *queries = seen.lanes["lanes"]
    assert request["awaited_by"] is None
    assert "children" in request["pieces"]["state"]
    line = next(n for n, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "asyncio.gather(" in text)
    assert [(lane["depth"], lane["awaited_by"]["lane"]) for lane in queries] == [(1, 0), (1, 0)]
    assert {(lane["awaited_by"]["function"], lane["awaited_by"]["line"]) for lane in queries} == {("request", line)}
    lengths = sorted(lane["pieces"]["end_us"][-1] - lane["pieces"]["start_us"][0] for lane in queries)
    assert seen.is_near(lengths[-1], seen.measured["queried"])


def test_all_other_views_say_the_same(seen: Seen) -> None:
    """Operations, span details, sandwich, weights of stacks, one statement, and two spans compared."""
    duration, measured = seen.root["duration_us"], seen.measured
    operation = next(found for found in seen.get("/api/operations") if found["name"] == "GET /orders")
    assert [operation[name] for name in ("runs", "total_us", "p50_us", "p95_us", "max_us")] == [1, *[duration] * 4]
    detail = seen.get(f"/api/traces/{seen.trace_id}/spans/{seen.root['span_id']}")
    assert (detail["split"], detail["same_operation"]["max_us"]) == (seen.root["split"], duration)
    asked = {"trace": seen.trace_id, "span": seen.root["span_id"], "scope": "children"}
    burn = seen.get("/api/sandwich", **asked, function="burn", file=str(PROGRAM))
    assert seen.is_near(burn["row"]["total_us"], measured["ran"])
    assert abs(burn["callers"]["total_us"] - burn["callees"]["total_us"]) <= 4
    assert seen.is_near(seen.get("/api/stacks", **asked, weight="cpu")["total_us"], measured["cpu"])
    short, long = sorted(seen.trace["spans"][1:], key=lambda span: int(span["duration_us"]))
    once, each = (seen.get("/api/stacks", **asked, weight=weight)["total_us"] for weight in ("elapsed", "task"))
    assert seen.is_near(each - once, short["duration_us"])
    statement = seen.get(f"/api/queries/{long['query_id']}")
    assert [run["duration_us"] for run in statement["slowest"]] == [long["duration_us"], short["duration_us"]]
    sides = {name: f"span:{seen.trace_id}:{span['span_id']}" for name, span in (("a", short), ("b", long))}
    compared = seen.get("/api/compare", **sides)
    assert [compared[side]["mean_us"] for side in "ab"] == [short["duration_us"], long["duration_us"]]
    change = next(row for row in compared["functions"] if compared["frames"][row["frame"]][0] == "query")
    assert seen.is_near(change["a_us"], short["duration_us"])
    assert seen.is_near(change["b_us"], long["duration_us"])
