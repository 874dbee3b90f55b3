"""`otel-asyncprof doctor`: what it looks at, and what it says to do where something is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from integration.command_line import otel_asyncprof

from otel_asyncprof._config import ProfilerConfig
from otel_asyncprof.cli import checks
from otel_asyncprof.cli.connection import reach
from otel_asyncprof.demo.receiver import Receiver

NAMES = ["interpreter", "extension", "threads", "tasks", "awaiters", "spans", "signals", "event loops"]
NAMES += ["OpenTelemetry", "entry point", "test sample", "memory", "receiver"]


def by_name(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The checks of a JSON document."""
    return {check["name"]: check for check in document["checks"]}


def test_where_all_is_well_the_doctor_says_so_with_exit_status_0() -> None:
    """Every check is there, down to a sample that names its span, and to a receiver that takes profiles."""
    with Receiver() as receiver:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        done = otel_asyncprof("doctor", "--json", **variables)
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr, document["ok"]) == (0, "", True), done.stdout
    assert [check["name"] for check in document["checks"]] == NAMES
    assert {check["outcome"] for check in document["checks"]} == {"ok"}
    found = by_name(document)
    assert found["test sample"]["detail"] == "a query's sample names its span, below the request's coroutine"
    assert found["receiver"]["detail"].endswith("/v1development/profiles takes profiles")
    assert sys.executable in found["interpreter"]["detail"]


def test_each_problem_comes_with_its_next_step_and_exit_status_1() -> None:
    """On the terminal: a line for each check, and one below it for what to do."""
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "redis, asyncprof",
    }
    done = otel_asyncprof("doctor", **variables)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    problems = [(line, lines[number + 1]) for number, line in enumerate(lines) if line.startswith("problem")]
    assert problems == [
        (
            "problem  entry point: switched off by OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=redis, asyncprof",
            "         next: take asyncprof out of OTEL_PYTHON_DISABLED_INSTRUMENTATIONS",
        ),
        (
            "problem  receiver: http://127.0.0.1:1/v1development/profiles cannot be reached: Connection refused",
            "         next: start the receiver, or correct OTEL_EXPORTER_OTLP_ENDPOINT",
        ),
    ]
    assert lines[-1] == "2 problems found."


@pytest.fixture
def deaf_receiver() -> Iterator[str]:
    """A receiver of other signals."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_error(404)

        def log_message(self, *arguments: object) -> None:
            """Keeps quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_receiver_that_knows_no_profiles_is_a_problem(deaf_receiver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers, but not to this."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", f"{deaf_receiver}/v1development/profiles")
    result = reach("otlp_proto_http", ProfilerConfig(exporter="otlp_proto_http"))
    assert (result.outcome, "does not take profiles: " in result.detail) == ("problem", True)
    assert "--feature-gates=+service.profilesSupport" in result.next_step


@pytest.mark.parametrize(("exporter", "outcome"), [("otlp", "note"), ("otlp_proto_http", "ok")])
def test_a_protocol_that_a_distro_would_change_is_a_note(
    exporter: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """opentelemetry-instrument with the distro sends gRPC to whatever port."""
    for name in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL"):
        monkeypatch.delenv(name, raising=False)
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        result = reach(exporter, ProfilerConfig(exporter=exporter))
    assert result.outcome == outcome, result
    assert result.next_step == ("set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" if outcome == "note" else "")


def test_no_endpoint_and_no_receiver_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles may go to files alone."""
    for name in ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("otel_asyncprof.cli.connection._connect", lambda endpoint: "Connection refused")
    result = reach("otlp", ProfilerConfig())
    assert (result.outcome, result.next_step.partition(",")[0]) == ("note", "set OTEL_EXPORTER_OTLP_ENDPOINT")
    assert reach("file", ProfilerConfig()).detail == "profiles are not sent: OTEL_PROFILES_EXPORTER=file"


def test_a_receiver_that_takes_only_grpc_is_found_at_its_default_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """opentelemetry-instrument with the distro sends there, nothing else does."""
    for name in ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(
        "otel_asyncprof.cli.connection._connect", lambda endpoint: None if ":4317" in endpoint else "Connection refused"
    )
    result = reach("otlp", ProfilerConfig())
    assert (result.outcome, result.detail) == (
        "note",
        "nothing listens at http://localhost:4318/v1development/profiles, but something does at http://localhost:4317",
    )
    assert result.next_step.startswith("set OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
    assert "no endpoint is set" in reach("otlp_proto_http", ProfilerConfig(exporter="otlp_proto_http")).detail


def test_an_interpreter_that_is_not_supported_is_exit_status_4(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """What needs another interpreter is not tried."""
    from otel_asyncprof.cli import main

    monkeypatch.setattr("otel_asyncprof._platform.unsupported_reason", lambda: "it is too old")
    assert main(["doctor", "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert by_name(document)["interpreter"]["next"] == "use CPython 3.11, 3.12, 3.13, 3.14, 3.15 on 64-bit Linux"
    assert [check["name"] for check in document["checks"]] == ["interpreter", "OpenTelemetry", "entry point"]
    assert main(["run", "x.py"]) == 3  # x.py does not exist
    assert main(["run", __file__]) == 4
    assert "this interpreter cannot be profiled: it is too old" in capsys.readouterr().err


def test_a_feature_that_reads_wrong_is_a_problem_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The self-check's own words."""
    monkeypatch.setattr("otel_asyncprof._self_check.run", lambda anchors: {"threads": "", "spans": "reads 1, not 2"})
    threads, spans = checks._features()
    assert (threads.outcome, spans.outcome) == ("ok", "problem")
    assert spans.detail == "what is read is not what Python says: reads 1, not 2"


def test_a_check_that_fails_itself_is_a_problem_and_not_a_traceback() -> None:
    """Nothing that one check meets keeps the others from being made."""

    def check() -> Iterator[checks.Result]:
        raise RuntimeError("boom")

    (result,) = checks._guarded("broken", check)
    assert (result.outcome, result.detail) == ("problem", "the check itself failed: RuntimeError: boom")
