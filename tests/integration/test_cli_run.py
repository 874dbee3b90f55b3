"""`otel-asyncprof run`: the program does what it does without it, and what it did is known afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from integration.command_line import COMMAND, PROGRAMS, SHOP, TIMEOUT_SECONDS, environment, otel_asyncprof

from otel_asyncprof.analysis.findings import Findings
from otel_asyncprof.formats.recording import read_recording


def findings(path: Path) -> Findings:
    """What a recorded file says."""
    return Findings.of(read_recording(path.read_bytes()))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run of the shop, recorded."""
    path = tmp_path_factory.mktemp("shop") / "a shop.jsonl"
    arguments = ("-r", "200", "-o", path, SHOP, "7", "-o", "x", "--rate=5")
    return otel_asyncprof("run", *arguments, stdin="from the terminal\n"), path


def test_exit_status_arguments_stdin_and_stdout_are_the_programs_own(
    shop: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """And its environment holds nothing of ours once it runs but what the options set."""
    done, _ = shop
    assert done.returncode == 7, done.stderr
    assert json.loads(done.stdout) == {
        "argv": [str(SHOP), "7", "-o", "x", "--rate=5"],
        "stdin": "from the terminal\n",
        "environment": ["OTEL_ASYNCPROF_RATE"],
        "path": [str(PROGRAMS)],
    }


def test_a_recording_leads_each_query_to_its_request_and_its_caller(
    shop: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """Profiles and traces of one run, joined."""
    found = findings(shop[1])
    (query,) = found.queries()
    assert query.statement == "SELECT * FROM lines WHERE order_id = $1"
    assert (len(query.durations_ns), query.most_in_one_request) == (6, 2)
    assert dict(query.requests) == {f"GET /orders/{number}": 2 for number in range(3)}
    (caller, n_runs), *others = query.callers
    assert caller.startswith(f"fetch_lines ({SHOP}:")
    assert (n_runs, others) == (6, [])
    names = [frame.function for frame in query.slowest.stack]
    assert names == ["<module>", "main", "handle", "fetch_lines", "sleep"]
    assert {slow.span.name for slow in found.requests()} == {f"GET /orders/{number}" for number in range(3)}
    (process,) = found.processes
    assert (process.service, process.has_timeline) == ("cli_shop", True)
    assert process.pid > 0


def test_the_closing_summary_is_on_stderr_and_names_what_to_do_next(
    shop: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    """Samples, links, the slowest spans and queries with callers, the file, the next commands."""
    lines = shop[0].stderr.splitlines()
    assert all(line.startswith("otel-asyncprof: ") for line in lines), lines
    text = [line.removeprefix("otel-asyncprof: ") for line in lines]
    assert "linked to one of 9 spans; CPU" in text[0]
    assert [line.split()[0] for line in text[1:4]] == ["slowest"] * 3
    assert text[4].startswith("query ")
    assert f"SELECT * FROM lines WHERE order_id = $1  by fetch_lines ({SHOP}:" in text[4]
    assert text[5:] == [
        f"written  {shop[1]}",
        f"next     otel-asyncprof report '{shop[1]}'",
        f"         otel-asyncprof queries --slowest '{shop[1]}'",
        f"         otel-asyncprof report -o report.html '{shop[1]}'",
    ]


def test_a_quiet_run_of_a_module_writes_the_format_of_the_suffix_and_says_nothing(tmp_path: Path) -> None:
    """-m finds the module in the working directory, as Python does."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__main__.py").write_text("import time, sys; time.sleep(1); print(sys.argv[1:], __name__)")
    done = otel_asyncprof("run", "-q", "-o", "out.collapsed", "--mode", "wall", "-m", "shop", "-q", "--", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['-q', '--'] __main__\n", "")
    lines = (tmp_path / "out.collapsed").read_text().splitlines()
    assert any("shop/__main__.py:1) " in line for line in lines), lines


CHILDREN = """
import multiprocessing, os, subprocess, sys, time

def sleep_here(): time.sleep(0.8)

if __name__ == "__main__":
    sleep_here()
    if not os.fork():
        sleep_here()
        sys.exit()
    os.wait()
    subprocess.run([sys.executable, "-c", "import time\\ntime.sleep(0.8)"], check=True)
"""


@pytest.mark.parametrize(("options", "n_processes"), [((), 1), (("--subprocesses",), 3)])
def test_children_are_profiled_only_when_that_is_asked_for(
    tmp_path: Path, options: tuple[str, ...], n_processes: int
) -> None:
    """Forks and new interpreters alike."""
    program = tmp_path / "children.py"
    program.write_text(CHILDREN)
    done = otel_asyncprof("run", *options, "--no-instrument", "-o", tmp_path / "a.otlp", program)
    assert done.returncode == 0, done.stderr
    assert len({process.pid for process in findings(tmp_path / "a.otlp").processes}) == n_processes


def test_a_program_that_dies_by_a_signal_is_seen_to_die_by_it(tmp_path: Path) -> None:
    """The shell shows 128 and the number, and the profile until then is there."""
    program = tmp_path / "dies.py"
    program.write_text("import os, signal, time\ntime.sleep(1)\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)")
    done = otel_asyncprof("run", "--no-instrument", "-o", tmp_path / "a.jsonl", program)
    assert done.returncode == -signal.SIGTERM
    assert findings(tmp_path / "a.jsonl").n_observations > 0


SIGNALLED = """
import signal, sys, time
got = []
def note(number, frame): got.append(signal.Signals(number).name)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1): signal.signal(number, note)
print("ready", flush=True)
for name in sys.stdin:
    n = int(name)
    deadline = time.monotonic() + 60
    while len(got) < n and time.monotonic() < deadline: time.sleep(0.01)
    print(*got, flush=True)
sys.exit(3)
"""


def test_signals_that_are_sent_to_us_reach_the_program_once_each(tmp_path: Path) -> None:
    """The program decides what they mean; we stay until it ends."""
    program = tmp_path / "signalled.py"
    program.write_text(SIGNALLED)
    command = [*COMMAND, "run", "-q", "--no-instrument", "-o", str(tmp_path / "a.jsonl"), str(program)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        sent = []
        for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):
            sent.append(number.name)
            process.send_signal(number)
            process.stdin.write(f"{len(sent)}\n")
            process.stdin.flush()
            assert process.stdout.readline().split() == sent
        process.stdin.close()
        assert process.wait(TIMEOUT_SECONDS) == 3


def test_after_its_duration_the_profile_ends_and_the_program_goes_on(tmp_path: Path) -> None:
    """What comes later is not in the profile."""
    program = tmp_path / "long.py"
    program.write_text(
        "import threading, time\n"
        "def early(): time.sleep(0.3)\n"
        "def late(): time.sleep(0.3)\n"
        "early()\n"
        "deadline = time.monotonic() + 60\n"
        "clocks = lambda: [t for t in threading.enumerate() if t.name == 'otel-asyncprof-duration']\n"
        "while clocks() and time.monotonic() < deadline: time.sleep(0.01)\n"
        "late()\nprint('to the end')"
    )
    done = otel_asyncprof("run", "-d", "200ms", "--no-instrument", "-o", tmp_path / "a.jsonl", program)
    assert (done.returncode, done.stdout) == (0, "to the end\n"), done.stderr
    functions = {name for sample in findings(tmp_path / "a.jsonl").samples for name in sample.functions}
    assert "early" in functions
    assert "late" not in functions


def test_only_what_runs_is_recorded_when_that_is_asked_for(tmp_path: Path) -> None:
    """No sample of a task that waits."""
    done = otel_asyncprof("run", "--async-mode", "running", "-o", tmp_path / "a.jsonl", SHOP)
    assert done.returncode == 0, done.stderr
    assert {sample.state for sample in findings(tmp_path / "a.jsonl").samples} <= {"running", "blocked"}


def test_the_users_own_sitecustomize_runs_as_before(tmp_path: Path) -> None:
    """And what it sets is there for the program."""
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.from_site = 'mine'")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sitecustomize, time; print(from_site, os.environ['PYTHONPATH'], sitecustomize.__file__)"
    )
    done = otel_asyncprof("run", "-q", "-o", tmp_path / "a.jsonl", program, PYTHONPATH=str(tmp_path))
    assert done.stdout.split() == ["mine", str(tmp_path), str(tmp_path / "sitecustomize.py")], done.stderr


def test_a_program_that_is_not_python_runs_and_we_say_that_nothing_was_profiled(tmp_path: Path) -> None:
    """One line, and the program's own status."""
    done = otel_asyncprof("run", "-o", tmp_path / "a.jsonl", "--", "sh", "-c", "echo hello; exit 5")
    assert (done.returncode, done.stdout) == (5, "hello\n")
    reason = "the program is not Python, ignores PYTHONPATH, or was killed at once"
    assert done.stderr == f"otel-asyncprof: no process was profiled: {reason}\n"
    assert not (tmp_path / "a.jsonl").exists()


def test_a_program_that_is_killed_at_once_is_not_taken_for_one_that_cannot_be_profiled(tmp_path: Path) -> None:
    """It was looked at, but had no time to write anything."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = otel_asyncprof("run", "--no-instrument", "-o", tmp_path / "a.jsonl", "--", sys.executable, "-c", code)
    reason = "nothing was recorded: the program ended, or was killed, too soon"
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, f"otel-asyncprof: {reason}\n")


OPEN_STREAMS = """
import os, pathlib, sys, time
time.sleep(1)
def is_open(number):
    try: os.fstat(number)
    except OSError: return False
    return True
found = str([is_open(number) for number in range(3)])
pathlib.Path(__file__).with_suffix(".found").write_text(found)
sys.exit(6)
"""


@pytest.mark.parametrize(("closed", "found"), [("<&-", [False, True, True]), (">&- 2>&- <&-", [False] * 3)])
def test_streams_that_are_closed_are_closed_for_the_program(closed: str, found: list[bool], tmp_path: Path) -> None:
    """It runs as it does without us, and is recorded."""
    program = tmp_path / "program.py"
    program.write_text(OPEN_STREAMS)
    command = f"exec {' '.join(COMMAND)} run --no-instrument -o {tmp_path}/a.jsonl {program} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 6, done.stderr
    assert program.with_suffix(".found").read_text() == str(found)
    assert findings(tmp_path / "a.jsonl").n_observations > 0


def test_a_process_that_cannot_be_profiled_says_why_and_runs(tmp_path: Path) -> None:
    """Here because a variable switches the profiler off."""
    done = otel_asyncprof("run", "-o", tmp_path / "a.jsonl", "--no-instrument", "--", sys.executable, "-c", "print(1)",
                          OTEL_ASYNCPROF_ENABLED="false")  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "was not profiled: OTEL_ASYNCPROF_ENABLED or OTEL_SDK_DISABLED switches the profiler off" in done.stderr


def test_without_a_file_the_recording_gets_a_name_of_its_own(tmp_path: Path) -> None:
    """So that the next commands have something to read."""
    done = otel_asyncprof(
        "run", "--no-instrument", "--", sys.executable, "-c", "import time; time.sleep(1)", cwd=tmp_path
    )
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("asyncprof-python")
    assert f"otel-asyncprof report {file.name}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        ([], 2, "a command is missing: one of run, report, "),
        (["profile"], 2, "there is no command 'profile': one of run, report, "),
        (["run"], 2, "run: what is to be run? (script.py | -m module | -- program) [arguments]"),
        (["run", "nowhere.py"], 3, "nowhere.py does not exist"),
        (["run", "sh"], 3, "sh does not exist; for a command: otel-asyncprof run -- sh"),
        (
            ["run", "--", "no-such-program"],
            3,
            "no-such-program is not a program that can be run, neither here nor on PATH",
        ),
        (
            ["run", "-o", "missing/a.jsonl", "--", "true"],
            3,
            "missing/a.jsonl cannot be written: there is no folder missing",
        ),
        (["run", "-o", "a.svg", "--", "true"], 2, "the suffix of a.svg names no format: say -f "),
        (["run", "-o", "-", "--", "true"], 2, "stdout belongs to the program: say -o FILE"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    arguments: list[str], status: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """2 usage, 3 cannot start; nothing is run."""
    from otel_asyncprof.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"otel-asyncprof: {line}")
    assert err.count("\n") == 1


def test_a_usage_error_shows_the_usage_of_its_command(capsys) -> None:
    """Not of all commands."""
    from otel_asyncprof.cli import main

    with pytest.raises(SystemExit, match="2"):
        main(["run", "--frequency", "x.py"])
    usage, line = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: otel-asyncprof run [options] (script.py | -m module")
    assert line == "otel-asyncprof run: error: unrecognized arguments: --frequency"


@pytest.mark.parametrize(("value", "allowed"), [("0", "1 to 1000"), ("2khz", "1 to 1000"), ("fast", "1 to 1000")])
def test_a_bad_rate_is_a_usage_error(value: str, allowed: str, capsys) -> None:
    """argparse's own way: usage, one line, status 2."""
    from otel_asyncprof.cli import main

    with pytest.raises(SystemExit, match="2"):
        main(["run", "-r", value, "x.py"])
    assert f"no rate from {allowed}" in capsys.readouterr().err


def test_the_settings_in_effect_can_be_printed_without_secrets(capsys, monkeypatch) -> None:
    """Flags over variables over defaults."""
    from otel_asyncprof.cli import main

    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_ASYNCPROF_RATE", "50")
    monkeypatch.setenv("OTEL_ASYNCPROF_INTERVAL", "2s")
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_PROFILES_HEADERS"):
        monkeypatch.setenv(name, "authorization=secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "https://user:secret@other/profiles")
    assert main(["run", "-r", "1khz", "--endpoint", "http://user:secret@host:4318", "--print-env"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "OTEL_ASYNCPROF_RATE=1000" in lines
    assert "OTEL_ASYNCPROF_INTERVAL=2.0" in lines
    assert "OTEL_ASYNCPROF_LINK=span" in lines
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://host:4318" in lines
    assert "OTEL_EXPORTER_OTLP_HEADERS=(not shown)" in lines
    assert "OTEL_EXPORTER_OTLP_PROFILES_HEADERS=(not shown)" in lines
    assert "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=https://other/profiles" in lines
    assert "OTEL_ASYNCPROF_TIMELINE=true" in lines  # a recording has it, other than the profiler alone
    assert not any(line.endswith("=None") for line in lines)
    assert not any("secret" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "variable", "protocol"),
    [
        (["--endpoint", "http://host:4317"], "", "grpc"),
        (["--endpoint", "http://host:4317/"], "", "grpc"),
        (["--endpoint", "http://host:4318"], "", "http/protobuf"),
        (["--endpoint", "https://host"], "", "http/protobuf"),
        (["--endpoint", "http://host:4317"], "http/protobuf", "http/protobuf"),
        (["--endpoint", "http://host:4318", "--protocol", "grpc"], "http/protobuf", "grpc"),
    ],
)
def test_the_protocol_of_an_endpoint_is_that_of_its_port_unless_said(
    arguments: list[str], variable: str, protocol: str, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """Whether a distro is installed, whose protocol is gRPC, makes no difference."""
    from otel_asyncprof.cli import main

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", variable)
    assert main(["run", *arguments, "--print-env"]) == 0
    assert f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}" in capsys.readouterr().out.splitlines()


def test_with_an_endpoint_profiles_and_traces_are_sent_and_no_file_is_made(tmp_path: Path) -> None:
    """A run beside a receiver: what it gets belongs together."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    from otel_asyncprof.analysis.spans import read_spans
    from otel_asyncprof.demo.receiver import Receiver
    from otel_asyncprof.formats.stack_sample import stack_samples

    with Receiver() as receiver:
        options = ("--endpoint", receiver.endpoint, "--service-name", "orders")
        done = otel_asyncprof("run", *options, SHOP, cwd=tmp_path, OTEL_METRICS_EXPORTER="none")
    assert done.returncode == 0, done.stderr
    spans = {(span.id, span.service) for span in read_spans(map(TracesData.FromString, receiver.traces))}
    assert (len(spans), {service for _, service in spans}) == (9, {"orders"})
    links = {(sample.trace_id, sample.span_id) for sample in stack_samples(receiver.profiles) if sample.span_id}
    assert links
    assert links <= {span_id for span_id, _ in spans}
    assert list(tmp_path.iterdir()) == []
    assert "linked to one of 9 spans" in done.stderr
    assert "written" not in done.stderr
