"""Collectors that are down, slow or know no profiles: the application ends in time; one line, and no secret told."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass

import pytest
from conformance import check_request
from integration.applications import Application, Ended, environment, plugin, run, run_all
from integration.collectors import ACCEPT, BUSY, COLLECTORS, MALFORMED, PARTIAL, SILENT, UNKNOWN, Collector, closed_port

SECRET = "open-sesame"
EXIT_SECONDS = 5.0 + 1.0  # longer than beside a collector that answers
DOWN = "down"
NOT_UNDERSTOOD = (
    "{endpoint} does not take OTLP profiles of development version 1: {reason}. It is asked again in 5 minutes; until "
    "then profiles are dropped"
)
UNREACHABLE = "a profile could not be sent to {endpoint} and is dropped: {reason}"
LINES = {
    SILENT: ["the last profile could not be exported (5.0 s were allowed)"],
    ACCEPT: [],
    DOWN: [UNREACHABLE],
    UNKNOWN: [NOT_UNDERSTOOD],
    MALFORMED: [NOT_UNDERSTOOD],
    BUSY: [UNREACHABLE],
    PARTIAL: ["{endpoint} rejected 1 profiles (1 in all)"],
}
REASONS = {
    ("http", DOWN): "Connection refused",
    ("http", UNKNOWN): "HTTP 404 Not Found",
    ("http", MALFORMED): "HTTP 400 Bad Request",
    ("http", BUSY): "HTTP 503 Service Unavailable",
    ("grpc", DOWN): "gRPC UNAVAILABLE",
    ("grpc", UNKNOWN): "gRPC UNIMPLEMENTED",
    ("grpc", MALFORMED): "gRPC INVALID_ARGUMENT",
    ("grpc", BUSY): "gRPC UNAVAILABLE",
}
CASES = [(kind, behaviour) for behaviour in LINES for kind in COLLECTORS]


def path_of(kind: str) -> str:
    """What stands behind the host in the endpoint of profiles."""
    return "/v1development/profiles" if kind == "http" else ""


@dataclass(frozen=True)
class Outcome:
    """How the program ended beside a collector."""

    ended: Ended
    host: str
    collector: Collector | None

    @property
    def warnings(self) -> list[str]:
        """The lines of a warning or worse, without level and logger."""
        loud = [line for line in self.ended.lines if line.startswith(("WARNING:", "ERROR:", "CRITICAL:"))]
        return [line.split(":", 2)[2] for line in loud]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Outcome]:
    """One run for each case, with secrets wherever there may be some and everything logged."""
    folder = tmp_path_factory.mktemp("logging")
    path = plugin(folder, "import logging; logging.basicConfig(level=logging.DEBUG)")
    jobs, hosts, collectors = [], [], []
    with contextlib.ExitStack() as stack:
        for kind, behaviour in CASES:
            collector = None if behaviour == DOWN else stack.enter_context(COLLECTORS[kind](behaviour))
            host = collector.endpoint.removeprefix("http://") if collector else f"127.0.0.1:{closed_port()}"
            variables = environment(
                PYTHONPATH=path,
                OTEL_LOG_LEVEL="debug",
                OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=COLLECTORS[kind].protocol,
                OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=f"http://user:{SECRET}@{host}{path_of(kind)}",
                OTEL_EXPORTER_OTLP_PROFILES_HEADERS=f"api-key={SECRET},x-{SECRET}",
            )
            jobs.append(functools.partial(run, "until_told.py", env=variables, launch="injected"))
            hosts.append(host)
            collectors.append(collector)
        ends = run_all(*jobs)
    return {
        case: Outcome(ended, host, collector)
        for case, ended, host, collector in zip(CASES, ends, hosts, collectors, strict=True)
    }


@pytest.fixture(params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Protocol and behaviour of a collector."""
    found: tuple[str, str] = request.param
    return found


def test_the_application_ends_in_time_with_one_line(
    outcomes: dict[tuple[str, str], Outcome], case: tuple[str, str]
) -> None:
    """Output and status are its own; the line says what became of the profile."""
    outcome = outcomes[case]
    assert (outcome.ended.status, outcome.ended.stdout) == (3, "done\n"), outcome.ended.stderr
    kind, behaviour = case
    assert outcome.ended.seconds < outcomes[kind, ACCEPT].ended.seconds + EXIT_SECONDS
    endpoint = f"http://{outcome.host}{path_of(kind)}"
    lines = [line.format(endpoint=endpoint, reason=REASONS.get(case)) for line in LINES[behaviour]]
    header = "OTEL_EXPORTER_OTLP_PROFILES_HEADERS: pair 2 is not name=value and is left out"
    assert outcome.warnings == [header, *lines]
    assert "Traceback" not in outcome.ended.stderr
    assert "Fatal" not in outcome.ended.stderr


def test_no_secret_is_told(outcomes: dict[tuple[str, str], Outcome], case: tuple[str, str]) -> None:
    """Neither headers nor the user of the URL, though all loggers are at their most talkative."""
    assert "DEBUG:" in outcomes[case].ended.stderr
    assert SECRET not in outcomes[case].ended.stderr


def test_at_the_end_nothing_is_sent_twice(outcomes: dict[tuple[str, str], Outcome], case: tuple[str, str]) -> None:
    """Whatever the answer was; what was sent keeps the rules and carries the headers."""
    collector = outcomes[case].collector
    if collector is None:
        return
    (arrival,) = collector.arrivals
    assert arrival.headers["api-key"] == SECRET
    check_request(collector.profiles[0])


@pytest.mark.parametrize("kind", COLLECTORS)
def test_a_busy_collector_gets_the_same_profile_again(kind: str) -> None:
    """After the time that it asks for, and nobody need know."""
    with COLLECTORS[kind]() as collector:
        collector.answers.append(BUSY)
        variables = environment(collector, OTEL_ASYNCPROF_INTERVAL="0.2", OTEL_TRACES_EXPORTER="none")
        with Application("until_told.py", env=variables) as application:
            assert collector.wait_for(lambda: len(collector.profiles) >= 3)
            ended = application.end()
    assert (ended.status, ended.stdout, ended.stderr) == (3, "done\n", "")
    first, second, third, *_ = collector.profiles
    assert first == second
    assert second != third
