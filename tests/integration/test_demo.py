"""The demo as a command: its service, its report on real telemetry, and how it ends."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from otel_asyncprof.analysis.findings import Findings
from otel_asyncprof.demo.load import drive
from otel_asyncprof.demo.receiver import Receiver
from otel_asyncprof.demo.service import SHOP, Service
from otel_asyncprof.demo.telemetry import read_spans
from otel_asyncprof.formats.recording import read_recording


def test_the_shop_knows_nothing_of_tracing_and_profiling() -> None:
    """The service imports neither OpenTelemetry nor this project."""
    imported = {
        ((node.module or "") if isinstance(node, ast.ImportFrom) else alias.name).partition(".")[0]
        for node in ast.walk(ast.parse(SHOP.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    standard = {"asyncio", "collections", "contextlib", "csv", "io", "itertools", "pathlib", "tempfile", "typing"}
    assert imported == standard | {"starlette", "tortoise"}


def test_every_query_of_the_shop_belongs_to_a_request_in_the_traces() -> None:
    """The trace half alone: official instrumentations give each statement a CLIENT span below its SERVER span."""
    with Receiver() as receiver, Service(receiver.endpoint) as service:
        answered = drive(service.url, 2.0)
        service.stop()
    spans = {received.id: received for received in read_spans(receiver.traces)}
    requests = [received for received in spans.values() if received.is_server]
    queries = [received for received in spans.values() if received.is_client and received.parent]
    assert (len(requests), all(query.statement for query in queries)) == (answered, True)
    parents = {spans[query.parent].name for query in queries if query.parent}
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


DEMO = [sys.executable, "-P", "-m", "otel_asyncprof.cli", "demo"]


@pytest.fixture(scope="module")
def demo_output(recording: Path) -> subprocess.CompletedProcess[str]:
    """One run of the whole demo."""
    command = [*DEMO, "--once", "--json", "-o", str(recording)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo leaves what has arrived."""
    return tmp_path_factory.mktemp("demo") / "demo.jsonl"


def caller_function(query: dict[str, str]) -> str:
    """The function part of a caller, which is `file:line function`."""
    return query["caller"].partition(" ")[2]


def test_the_demo_leads_every_kind_of_query_back_to_its_request(demo_output: subprocess.CompletedProcess[str]) -> None:
    """Gathered coroutines, task groups and async generators: slowest first."""
    assert demo_output.returncode == 0, demo_output.stderr
    report = json.loads(demo_output.stdout)
    led_back = {(caller_function(query), query["request_span"]) for query in report["queries"]}
    assert led_back >= {
        ("running_total", "GET /dashboard/{region}"),
        ("bought_together", "GET /dashboard/{region}"),
        ("product_pages", "GET /export/{region}"),
        ("running_total", "GET /export/{region}"),
    }
    durations = [query["duration_ms"] for query in report["queries"]]
    assert durations == sorted(durations, reverse=True)


def test_the_other_commands_find_the_same_in_what_the_demo_leaves(
    demo_output: subprocess.CompletedProcess[str], recording: Path
) -> None:
    """The callers of its slow queries are the application's own functions; the next commands are named."""
    assert f"next     otel-asyncprof report {recording}" in demo_output.stderr
    found = Findings.of(read_recording(recording.read_bytes()))
    assert len(found.spans.by_id) == json.loads(demo_output.stdout)["spans"]
    slow = [query.slowest for query in found.queries() if query.durations_ns[-1] > 50_000_000]
    assert {query.caller.frame.function for query in slow if query.caller} >= {"running_total", "bought_together"}
    assert {query.caller.frame.file for query in slow if query.caller} == {str(SHOP)}


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
    """The stack of a query in a child task starts at the process' entry and goes through the handler that awaits it."""
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
def test_an_interrupted_demo_leaves_no_process(running_demo: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end the service too."""
    shops = children_of(running_demo.pid)
    assert len(shops) == 1
    running_demo.send_signal(number)
    running_demo.wait(30)
    deadline = time.monotonic() + 5
    while set(shops) & set(shop_processes()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not set(shops) & set(shop_processes())


def test_without_once_the_demo_ends_with_a_page_that_stays() -> None:
    """The slowest request is there, with its stacks; Ctrl-C ends it all."""
    with subprocess.Popen(DEMO, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            page = next(found[1] for line in process.stderr if (found := re.match(r"page +(http://\S+)", line)))
            with urlopen(f"{page}/api/traces?limit=1", timeout=30) as answer:
                slowest = json.load(answer)["traces"][0]
            with urlopen(f"{page}/api/stacks?trace={slowest['trace_id']}&scope=trace", timeout=30) as answer:
                stacks = json.load(answer)
            assert (slowest["queries"] > 0, stacks["samples"] > 0) == (True, True)
            assert str(SHOP) in {frame[1] for frame in stacks["frames"]}
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()
