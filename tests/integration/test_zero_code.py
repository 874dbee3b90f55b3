"""opentelemetry-instrument and variables alone: how the profiler is set up, switched off, and kept to itself."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conformance import check_request
from integration.applications import OTHERS, PROGRAMS, Application, Ended, environment, plugin, run, run_all
from integration.collectors import COLLECTORS, Collector, GrpcCollector, HttpCollector
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest

from otel_asyncprof.formats.stack_sample import StackSample, stack_samples

UNTOUCHED = {
    "sampler": False,
    "export thread": False,
    "context": "opentelemetry.context.contextvars_context.ContextVarsRuntimeContext",
    "handles SIGSEGV": False,
    "handles SIGBUS": False,
}
PROFILED = {
    "sampler": True,
    "export thread": True,
    "context": "otel_asyncprof._native.ContextVarsRuntimeContext",
    "handles SIGSEGV": True,
    "handles SIGBUS": True,
}
CONFIGURATION = """
file_format: "1.0"
resource:
  attributes:
    - name: service.name
      value: declared
tracer_provider:
  processors:
    - batch:
        exporter:
          otlp_http:
            endpoint: {endpoint}/v1/traces
instrumentation/development:
  python:
    asyncprof:
      rate: 50
      interval: 0.3
      timeline: perhaps
"""


@pytest.fixture
def collector() -> Iterator[HttpCollector]:
    """A collector on HTTP."""
    with HttpCollector() as running:
        yield running


def look(ended: Ended) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a program has seen of itself: what is ours, and what there is of anybody's."""
    ours, all_there_is = json.loads(ended.stdout)
    return ours, all_there_is


def test_a_profiled_process_shows_it(collector: Collector) -> None:
    """What the tests below find missing is there when the profiler runs."""
    ended = run("look.py", env=environment(collector))
    assert (ended.status, look(ended)[0], ended.stderr) == (0, PROFILED, "")
    assert [arrival.signal for arrival in collector.arrivals] == ["profiles"]


SWITCHES = [
    ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", ",".join([*OTHERS, "asyncprof"])),
    ("OTEL_SDK_DISABLED", "true"),
    ("OTEL_PROFILES_EXPORTER", "none"),
    ("OTEL_ASYNCPROF_ENABLED", "false"),
]


@pytest.fixture(scope="module")
def switched_off() -> dict[str, tuple[Ended, HttpCollector]]:
    """What became of the program with each switch, and its collector."""
    collectors = [HttpCollector() for _ in SWITCHES]
    with contextlib.ExitStack() as stack:
        for collector in collectors:
            stack.enter_context(collector)
        jobs = [
            functools.partial(run, "look.py", env=environment(collector, **{name: value}))
            for (name, value), collector in zip(SWITCHES, collectors, strict=True)
        ]
        names = [name for name, _ in SWITCHES]
        return dict(zip(names, zip(run_all(*jobs), collectors, strict=True), strict=True))


@pytest.mark.parametrize("variable", [name for name, _ in SWITCHES])
def test_switched_off_the_process_is_untouched(
    switched_off: dict[str, tuple[Ended, HttpCollector]], variable: str
) -> None:
    """No thread, no signal handler, no other runtime context, no request, no line."""
    ended, collector = switched_off[variable]
    untouched, rest = look(ended)
    assert (ended.status, untouched, ended.stderr) == (0, UNTOUCHED, "")
    assert collector.arrivals == []
    never_imported = look(switched_off["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"][0])[1]
    assert set(rest["threads"]) <= set(never_imported["threads"])
    assert rest["signals"] == never_imported["signals"]
    assert rest["exit callbacks"] <= never_imported["exit callbacks"]


def test_declarative_configuration_reaches_the_profiler(collector: Collector, tmp_path: Path) -> None:
    """Rate, interval and resource come from the file and not from the variables; a bad option costs one line."""
    file = tmp_path / "otel.yaml"
    file.write_text(CONFIGURATION.format(endpoint=collector.endpoint), encoding="utf-8")
    variables = environment(collector, OTEL_CONFIG_FILE=str(file), OTEL_SERVICE_NAME="other")
    with Application("until_told.py", env=variables) as application:
        assert collector.wait_for(lambda: len(collector.profiles) >= 2)
        ended = application.end()
    assert (ended.status, ended.stdout) == (3, "done\n")
    assert [line for line in ended.lines if "timeline" in line] == [
        "option timeline='perhaps' is not allowed (allowed: true, false); it is left out"
    ]
    assert "Traceback" not in ended.stderr
    for request in collector.profiles:
        check_request(request)
        assert service_name(request) == "declared"
        for profile in request.resource_profiles[0].scope_profiles[0].profiles:
            assert profile.period == 1_000_000_000 // 50
            assert 0.2 <= profile.duration_nano / 1e9 < 3 or request is collector.profiles[-1]


@pytest.mark.parametrize("line", ["enabled: false", "enabled: ${{PROFILES:-false}}"])
def test_switched_off_in_the_file_the_process_is_untouched(collector: Collector, tmp_path: Path, line: str) -> None:
    """Though opentelemetry-instrument goes on to start every instrumentation that is installed."""
    file = tmp_path / "otel.yaml"
    configuration = CONFIGURATION.replace("timeline: perhaps", line)
    file.write_text(configuration.format(endpoint=collector.endpoint), encoding="utf-8")
    ended = run("look.py", env=environment(collector, OTEL_CONFIG_FILE=str(file)))
    assert (ended.status, look(ended)[0]) == (0, UNTOUCHED)
    assert "asyncprof" not in ended.stderr
    assert collector.profiles == []


def test_with_the_distro_profiles_go_by_grpc() -> None:
    """Its default, for traces as for profiles; the endpoint alone is given."""
    with GrpcCollector() as collector:
        variables = environment(collector)
        del variables["OTEL_EXPORTER_OTLP_PROTOCOL"]
        ended = run("look.py", env=variables)
        assert (ended.status, ended.stderr) == (0, "")
        assert [arrival.signal for arrival in collector.arrivals] == ["profiles"]


def service_name(request: ExportProfilesServiceRequest) -> str:
    """The name of the service that a request is from."""
    resource = request.resource_profiles[0].resource
    return next(each.value.string_value for each in resource.attributes if each.key == "service.name")


def test_a_profiler_in_code_gives_way_to_the_one_that_runs(collector: Collector) -> None:
    """One line; the first goes on and sends everything."""
    ended = run("second_profiler.py", env=environment(collector))
    assert ended.lines == ["otel_asyncprof is already running in this process; this start does nothing"]
    assert (ended.status, ended.stdout) == (0, "False\n")
    (request,) = collector.profiles
    functions = {sample.functions for sample in samples(request)}
    assert ("<module>", "work", "sleep") in functions


def samples(*requests: ExportProfilesServiceRequest) -> list[StackSample]:
    """The samples of some requests."""
    return stack_samples(request.SerializeToString() for request in requests)


@pytest.fixture
def page() -> Iterator[str]:
    """The URL of a page that the application may ask for."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keeps quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


INSTRUMENT_FIRST = """
from opentelemetry.instrumentation.grpc import GrpcInstrumentorClient
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
for instrumentor in (GrpcInstrumentorClient, RequestsInstrumentor, URLLib3Instrumentor):
    instrumentor().instrument()
"""


@pytest.mark.parametrize("kind", COLLECTORS)
def test_our_own_requests_make_no_spans(kind: str, page: str, tmp_path: Path) -> None:
    """Though the libraries that send them are instrumented: the application's own requests have their spans."""
    method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    path = plugin(tmp_path, INSTRUMENT_FIRST)
    with COLLECTORS[kind]() as collector, GrpcCollector() as other:
        variables = environment(collector, OTEL_ASYNCPROF_INTERVAL="0.2", PYTHONPATH=path)
        target = other.endpoint.removeprefix("http://")
        with Application("calls.py", page, target, method, env=variables) as application:
            assert collector.wait_for(lambda: len(collector.profiles) >= 2)
            ended = application.end()
    assert (ended.status, ended.stderr) == (0, "")
    spans = [
        (scope.scope.name.removeprefix("opentelemetry.instrumentation."), span.name)
        for request in collector.traces
        for of_resource in request.resource_spans
        for scope in of_resource.scope_spans
        for span in scope.spans
    ]
    assert sorted(spans) == [("grpc", method), ("requests", "GET"), ("urllib3", "GET")]


def test_every_program_here_is_run_by_a_test() -> None:
    """None is left over."""
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    assert [path.name for path in PROGRAMS.glob("*.py") if f'"{path.name}"' not in sources] == []
