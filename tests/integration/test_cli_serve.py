"""`otel-asyncprof serve` and `run --view` as commands: ports, addresses, messages, ends."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from integration.applications import INSTRUMENT
from integration.command_line import COMMAND, PROGRAMS, TIMEOUT_SECONDS, environment, otel_asyncprof
from recordings import REQUEST, span, traces
from viewer_client import request, running_viewer, until

from otel_asyncprof.cli import serve, view, viewer_options
from otel_asyncprof.cli.messages import Failure
from otel_asyncprof.formats.recording import Recording, to_recording
from otel_asyncprof.viewer.server import CannotStart, Viewer, ViewerOptions

FREE = ("--grpc-port", "0", "--http-port", "0", "--ui-port", "0", "--ready-json")


@contextmanager
def serving(*arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A viewer in a process of its own, with its addresses."""
    process = subprocess.Popen(
        [*COMMAND, "serve", *FREE, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_serve_says_where_it_is_and_keeps_what_it_got(tmp_path: Path) -> None:
    """The page, both receivers and what to do; SIGTERM ends it, and the data are still there."""
    with serving(XDG_DATA_HOME=str(tmp_path)) as (process, addresses):
        reply = request(
            addresses["http"],
            "POST",
            "/v1/traces",
            traces().SerializeToString(),
            {"Content-Type": "application/x-protobuf"},
        )
        assert reply.status == 200
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 0
    database = tmp_path / "otel-asyncprof" / "viewer.db"
    assert said.splitlines()[:3] == [
        f"otel-asyncprof: page   {addresses['page']}      (Ctrl-C ends; data are kept in {database})",
        f"otel-asyncprof: OTLP   grpc {addresses['grpc']}   http {addresses['http']}",
        f"otel-asyncprof: try    OTEL_EXPORTER_OTLP_ENDPOINT={addresses['http']} "
        "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_ASYNCPROF_TIMELINE=true your-program",
    ]
    with serving(XDG_DATA_HOME=str(tmp_path)) as (_, addresses):
        assert request(addresses["page"], "GET", "/api/status", None, {}).json["spans"] == 2


def test_what_serve_says_to_try_works_under_the_distro(tmp_path: Path) -> None:
    """The distro sends by gRPC unless it is told another protocol."""
    program = tmp_path / "app.py"
    program.write_text(
        "from opentelemetry import trace\nwith trace.get_tracer('a').start_as_current_span('GET /'):\n    pass\n"
    )
    with serving("--db", ":memory:") as (process, addresses):
        assert process.stderr is not None
        said = next(line for line in process.stderr if ": try " in line)
        variables = dict(re.findall(r"(OTEL_\w+)=(\S+)", said))
        subprocess.run(
            [INSTRUMENT, sys.executable, str(program)],
            env=environment(**variables, OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none"),
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        assert until(lambda: request(addresses["page"], "GET", "/api/status", None, {}).json["spans"] == 1)


def test_off_loopback_the_token_is_said() -> None:
    """In the page's address, and as the header that senders need."""
    with serving("--host", "0.0.0.0", "--db", ":memory:", "--token", "s3cret") as (process, addresses):
        assert addresses["page"].endswith("/?token=s3cret")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=TIMEOUT_SECONDS)
    assert "others can reach 0.0.0.0" in said
    assert "OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20s3cret'" in said


def test_it_ends_with_the_process_that_has_started_it() -> None:
    """However that one ends: its pipe is closed."""
    with serving("--db", ":memory:", "--until-stdin-ends", "--quiet") as (process, _):
        _, said = process.communicate(timeout=TIMEOUT_SECONDS)
        assert (process.returncode, said) == (0, "")


def test_a_port_that_is_taken_is_named_with_what_helps() -> None:
    """Exit status 3. A Collector's port is not taken from it."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = otel_asyncprof("serve", *FREE, "--db", ":memory:", "--http-port", port)
        with pytest.raises(
            CannotStart, match=f"127.0.0.1:{port} is taken: end what listens there, or say --grpc-port 0"
        ):
            Viewer(ViewerOptions(grpc_port=port, http_port=0, ui_port=0))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"otel-asyncprof: 127.0.0.1:{port} is taken: end what listens there, or say --http-port 0\n"


def test_the_page_moves_to_the_next_port_that_is_free() -> None:
    """Unlike the receivers, whose addresses are configured elsewhere."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        viewer = Viewer(ViewerOptions(ui_port=port, grpc_port=None, http_port=None))
        try:
            assert port < int(viewer.page_address.rpartition(":")[2]) <= port + 20
        finally:
            viewer.start().stop()


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_the_extra_the_command_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 3, for serve and for run --view."""
    monkeypatch.setattr(viewer_options, "find_spec", lambda name: None if name == package else object())
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    for attempt in (lambda: serve.run(parser.parse_args([])), lambda: view.ViewerBeside(quiet=True)):
        with pytest.raises(
            Failure, match=rf"{package} cannot be imported: pip install 'otel-asyncprof\[viewer\]'"
        ) as caught:
            attempt()
        assert caught.value.status == 3


def test_without_grpcio_otlp_is_received_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """And that is said."""
    monkeypatch.setitem(sys.modules, "grpc", None)
    monkeypatch.delitem(sys.modules, "otel_asyncprof.viewer.grpc_receiver", raising=False)
    with running_viewer() as client:
        assert client.said == ["grpcio is not installed: OTLP is received over HTTP only"]
        assert client.get("/api/status")["receivers"]["grpc"] is None
        assert client.otlp("/v1/traces", traces().SerializeToString()).status == 200


def test_run_with_a_view_sends_everything_there() -> None:
    """Whatever the environment says about other receivers."""
    beside = object.__new__(view.ViewerBeside)
    beside.endpoint = "http://127.0.0.1:1"
    before = {
        "PATH": "/bin",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://elsewhere",
        "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT": "http://elsewhere",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_HEADERS": "secret=1",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_ASYNCPROF_INTERVAL": "1s",
    }
    assert beside.environment(before) == {
        "PATH": "/bin",
        "OTEL_ASYNCPROF_INTERVAL": "1s",
        "OTEL_BSP_SCHEDULE_DELAY": "1000",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_ASYNCPROF_TIMELINE": "true",
    }


def test_a_view_and_an_endpoint_exclude_each_other() -> None:
    """A usage error; nothing is run."""
    done = otel_asyncprof("run", "--view", "--endpoint", "http://x", PROGRAMS / "timed_request.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "exclude each other" in done.stderr


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        (viewer_options.size, {"512MB": 512 << 20, "2g": 2 << 30, "16 MiB": 16 << 20}, ["1MB", "x", "", "-5GB"]),
        (viewer_options.age, {"7d": 604800.0, "0.5d": 43200.0, "12h": 43200.0, "30": 30.0}, ["0", "d", "x"]),
        (viewer_options.mapping, {"/srv=/here": ("/srv", "/here")}, ["/srv", "=x", "x="]),
        (
            viewer_options.editor,
            {"vscode": "vscode://file/{file}:{line}", "x://{file}": "x://{file}"},
            ["emacs", "javascript:{file}"],
        ),
    ],
)
def test_values_of_options(function: object, good: dict[str, object], bad: list[str]) -> None:
    """Sizes, ages, maps and editors."""
    assert callable(function)
    assert {text: function(text) for text in good} == good
    for text in bad:
        with pytest.raises(argparse.ArgumentTypeError):
            function(text)


@pytest.mark.parametrize(
    ("variable", "value"), [("OTEL_ASYNCPROF_VIEWER_UI_PORT", "many"), ("OTEL_ASYNCPROF_VIEWER_EDITOR", "emacs")]
)
def test_a_bad_value_in_the_environment_is_a_usage_error(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it would be on the command line."""
    monkeypatch.setenv(variable, value)
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    with pytest.raises(SystemExit) as caught:
        parser.parse_args([])
    assert caught.value.code == 2
    assert variable in capsys.readouterr().err


def test_every_option_with_a_value_is_a_variable_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command line wins over the environment, even over a bad value there."""
    values = {
        "HOST": "::1",
        "GRPC_PORT": "1",
        "HTTP_PORT": "2",
        "UI_PORT": "3",
        "DB": "x.db",
        "DB_MAX_SIZE": "1GB",
        "RETAIN": "2d",
        "SOURCE_ROOT": "/srv",
        "EDITOR": "x://{file}",
        "TOKEN": "t",
        "ALLOW_HOST": "one,two",
    }
    for name, value in values.items():
        monkeypatch.setenv(f"OTEL_ASYNCPROF_VIEWER_{name}", value)
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    chosen = vars(parser.parse_args(["--ui-port", "4"]))
    assert {name: chosen[name.lower()] for name in values} == {
        "HOST": "::1",
        "GRPC_PORT": 1,
        "HTTP_PORT": 2,
        "UI_PORT": 4,
        "DB": "x.db",
        "DB_MAX_SIZE": 1 << 30,
        "RETAIN": 172800.0,
        "SOURCE_ROOT": Path("/srv"),
        "EDITOR": "x://{file}",
        "TOKEN": "t",
        "ALLOW_HOST": ["one", "two"],
    }
    monkeypatch.setenv("OTEL_ASYNCPROF_VIEWER_UI_PORT", "many")
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    assert parser.parse_args(["--ui-port", "5"]).ui_port == 5


def test_a_viewer_beside_a_program_listens_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment says of address and token is for `serve`: the program would be refused."""
    monkeypatch.setenv("OTEL_ASYNCPROF_VIEWER_HOST", "0.0.0.0")
    monkeypatch.setenv("OTEL_ASYNCPROF_VIEWER_TOKEN", "s3cret")
    with view.ViewerBeside(quiet=True) as beside:
        assert beside.page.startswith("http://127.0.0.1:")
        assert request(beside.page, "GET", "/api/status", None, {}).status == 200


def test_a_recording_is_opened_on_the_page_and_nothing_is_kept(tmp_path: Path) -> None:
    """However old it is."""
    recording = tmp_path / "old.jsonl"
    recording.write_bytes(to_recording(Recording([], [traces(span(REQUEST, "old", 0, 90))])))
    command = [*COMMAND, "open", str(recording), "--ui-port", "0", "--ready-json", "--until-stdin-ends"]
    variables = environment(TMPDIR=str(tmp_path), XDG_DATA_HOME=str(tmp_path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        addresses = json.loads(process.stdout.readline())
        status = request(addresses["page"], "GET", "/api/status", None, {}).json
        assert (status["spans"], addresses["http"], addresses["grpc"]) == (1, None, None)
        process.stdin.close()
        assert process.wait(TIMEOUT_SECONDS) == 0
    assert list(tmp_path.iterdir()) == [recording]


def test_what_is_no_recording_is_not_opened(tmp_path: Path) -> None:
    """One line, exit status 3."""
    (tmp_path / "x").write_bytes(b"nothing of ours")
    done = otel_asyncprof("open", tmp_path / "x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "is no recording" in done.stderr


def test_the_default_file_is_where_data_of_users_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG's folder, or its default."""
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert serve.default_database() == os.path.expanduser("~/.local/share/otel-asyncprof/viewer.db")
