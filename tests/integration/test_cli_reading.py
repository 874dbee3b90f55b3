"""report, traces, queries, stacks, diff and export: what they print of a recording, and what of a file that is none."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from integration.command_line import COMMAND, environment, otel_asyncprof
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from recordings import QUERY, REQUEST, profiles, recording, span, traces

from otel_asyncprof.cli import main
from otel_asyncprof.cli.messages import Failure
from otel_asyncprof.cli.output import Output
from otel_asyncprof.formats.recording import Recording, read_recording, to_recording

CALLER = "fetch_lines (/app/orders.py:7)"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A recorded file: a request with one query."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(to_recording(recording()))
    return str(path)


def slower(factor: int) -> Recording:
    """The same request, this many times as long."""
    request = span(REQUEST, "GET /orders", 0, 90 * factor, kind=Span.SPAN_KIND_SERVER)
    return Recording(profiles(), [traces(request)])


def test_the_report_shows_requests_queries_and_stacks_without_colours(file: str, capsys) -> None:
    """Where it is not a terminal, there are no colours."""
    assert main(["report", file]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "10.0 s: 11 samples, 91% linked, 2 spans",
        "  shop 4711: 10.0 s, CPU 20.0 ms",
        "  time of all tasks and threads: waiting 80%, blocked 12%, running 8%",
        "",
        "Slowest requests",
        "   90.0 ms  GET /orders",
        "            waiting 67%, blocked 21%, running 12%; 2 spans, 1 query; trace 0102030405060708090a0b0c0d0e0f10",
        "",
        "Queries with the most time",
        "   80.0 ms  SELECT * FROM lines",
        "            1 run, p50 80.0 ms, p95 80.0 ms, slowest 80.0 ms",
        f"            by {CALLER}  (1 run)",
        "            for GET /orders  (1 run)",
        "            slowest: trace 0102030405060708090a0b0c0d0e0f10",
        "",
        "Stacks with the most time",
        "   80.0 ms  waiting 100%",
        "            main (/app/shop.py:90)",
        "            Shop.handler (/app/shop.py:20)",
        f"            {CALLER}",
        "            Connection.fetch (/env/lib/python3.12/site-packages/driver/connection.py:690)",
        "   80.0 ms  waiting 100%",
        "            worker (/app/pool.py:4)",
        "   25.0 ms  blocked 100%, CPU 10.0 ms",
        "            main (/app/shop.py:90)",
        "            Shop.handler (/app/shop.py:20)",
        "            gefährlich;<b>\N{REPLACEMENT CHARACTER}</script> (/app/ö dir/a.py:3)",
        "   15.0 ms  running 100%, CPU 10.0 ms",
        "            main (/app/shop.py:90)",
        "            Shop.handler (/app/shop.py:20)",
    ]


def test_queries_as_json_say_who_asked_and_how_long_it_took(file: str, capsys) -> None:
    """For scripts: names with units, ids in hexadecimal."""
    assert main(["queries", "--json", file]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["found"] == 1
    (query,) = document["queries"]
    assert query["statement"] == "SELECT * FROM lines"
    assert (query["runs"], query["total_ms"], query["p95_ms"]) == (1, 80.0, 80.0)
    assert query["callers"] == [{"caller": CALLER, "runs": 1}]
    assert query["requests"] == [{"name": "GET /orders", "runs": 1}]
    assert query["slowest"]["span_id"] == QUERY.hex()
    assert query["slowest"]["caller_is_exact"] is False
    assert query["slowest"]["stack"][-2] == CALLER


def test_a_caller_that_the_span_carries_is_exact(tmp_path: Path, capsys) -> None:
    """What was taken when the span began wins over what samples say, and is there without any sample."""
    exact = {"code__function__name": "load", "code__file__path": "/app/load.py", "code__line__number": 12}
    query = span(b"\x0c" * 8, "SELECT", 0, 500, parent_span_id=REQUEST, db__statement="SELECT 1", **exact)
    path = tmp_path / "a.jsonl"
    path.write_bytes(to_recording(Recording([], [traces(query)])))
    assert main(["queries", "--json", str(path)]) == 0
    (found,) = json.loads(capsys.readouterr().out)["queries"]
    assert (found["slowest"]["caller"], found["slowest"]["caller_is_exact"]) == ("load (/app/load.py:12)", True)


def many() -> Recording:
    """Requests of two services, one a second, the earlier the slower."""
    spans = [
        span(number.to_bytes(8), f"job {number}", 1000 * number, 1000 * number + 500 - number) for number in range(1, 9)
    ]
    return Recording([], [traces(*spans), traces(span(b"\x99" * 8, "other", 8000, 8100), service="other")])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-n", "3"], ["job 8", "other", "job 7"]),
        (["--slowest", "-n", "2"], ["job 1", "job 2"]),
        (["--since", "1900ms"], ["job 8", "other", "job 7"]),
        (["--service", "other"], ["other"]),
        (["--service", "nobody"], []),
    ],
)
def test_traces_can_be_chosen(options: list[str], expected: list[str], tmp_path: Path, capsys) -> None:
    """The newest first, the slowest first, the last ones, one service's."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(to_recording(many()))
    assert main(["traces", "--json", *options, str(path)]) == 0
    assert [trace["name"] for trace in json.loads(capsys.readouterr().out)["traces"]] == expected


def test_stacks_of_the_last_part_of_a_recording_hold_only_its_time(file: str, capsys) -> None:
    """Of the query, of which the last looks are within these times."""
    assert main(["stacks", "--json", "--since", "9.955s", file]) == 0
    found = {
        stack["frames"][-1]["function"]: stack["wall_ms"] for stack in json.loads(capsys.readouterr().out)["stacks"]
    }
    assert found == {"Connection.fetch": 40.0, "worker": 80.0}


def test_nothing_found_is_said_and_is_a_failure_only_when_that_is_asked_for(file: str, capsys) -> None:
    """Exit status 1 with --fail-if-empty."""
    assert main(["queries", "--service", "nobody", file]) == 0
    assert main(["queries", "--service", "nobody", "--fail-if-empty", file]) == 1
    assert main(["queries", "--fail-if-empty", file]) == 0
    assert "no spans in what you asked for" in capsys.readouterr().err


@pytest.mark.parametrize(("factor", "limit", "status"), [(1, "0%", 0), (2, "99%", 1), (2, "100%", 0), (3, "10", 1)])
def test_a_regression_is_exit_status_1_when_it_exceeds_the_limit(
    factor: int, limit: str, status: int, file: str, tmp_path: Path, capsys
) -> None:
    """The mean time of a request that is in both recordings."""
    later = tmp_path / "b.jsonl"
    later.write_bytes(to_recording(slower(factor)))
    assert main(["diff", "--fail-over", limit, file, str(later)]) == status
    out, err = capsys.readouterr()
    assert out.startswith("GET /orders\n  1 and 1 requests\n  mean")
    assert ("takes +" in err) is (status == 1)
    assert main(["diff", file, str(later)]) == 0


def test_a_difference_is_told_per_request_with_the_functions_that_have_changed(
    file: str, tmp_path: Path, capsys
) -> None:
    """Twice the work for twice the requests is no change."""
    later = tmp_path / "b.jsonl"
    second = span(b"\x0d" * 8, "GET /orders", 0, 90, kind=Span.SPAN_KIND_SERVER)
    twice = Recording([*profiles(), *profiles(pid=2)], [traces(), traces(second)])
    later.write_bytes(to_recording(twice))
    assert main(["diff", "--json", file, str(later)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["per_request"] is True
    assert document["cpu_ms"] == [20.0, 20.0]
    assert {change["ms"][0] - change["ms"][1] for change in document["functions"]} == {0.0}


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.jsonl", b"", "a.jsonl is no recording: it is empty: nothing was recorded"),
        ("a.py", b"print(1)\n", "a.py is no recording: it is neither OTLP/JSON nor OTLP protobuf"),
        ("a.json", b'{"traceEvents": []}', "a.json is no recording: it is a Chrome trace"),
        ("missing", None, "missing cannot be read: No such file or directory"),
        (".", None, ". cannot be read: Is a directory"),
    ],
)
@pytest.mark.parametrize("command", [["report"], ["stacks"], ["diff", "ok.jsonl"], ["export", "-o", "out.pprof"]])
def test_a_foreign_or_unreadable_file_is_one_clear_line(
    command: list[str], name: str, content: bytes | None, reason: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    """Exit status 3, nothing on stdout, nothing written."""
    monkeypatch.chdir(tmp_path)
    Path("ok.jsonl").write_bytes(to_recording(recording()))
    if content is not None:
        Path(name).write_bytes(content)
    assert main([*command, name]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"otel-asyncprof: {reason}")
    assert not Path("out.pprof").exists()


def test_parts_that_do_not_fit_each_other_are_one_clear_line(tmp_path: Path, capsys) -> None:
    """An index that points to nothing."""
    (broken,) = profiles()
    broken.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index = 999
    path = tmp_path / "a.jsonl"
    path.write_bytes(to_recording(Recording([broken])))
    for command in (
        ["report"],
        ["report", "-o", str(tmp_path / "x.html")],
        ["export", "-o", str(tmp_path / "x.pprof")],
    ):
        assert main([*command, str(path)]) == 3
        err = capsys.readouterr().err
        assert (err.count("\n"), "its parts do not fit each other" in err) == (1, True)


def test_an_export_is_written_to_a_file_or_to_stdout(file: str, tmp_path: Path) -> None:
    """stdout holds the bytes and nothing else."""
    done = subprocess.run(
        [*COMMAND, "export", "-f", "otlp-json", "-o", "-", file], capture_output=True, env=environment(), check=True
    )
    assert (read_recording(done.stdout), done.stderr) == (recording(), b"")
    packed = tmp_path / "b.jsonl.gz"
    assert main(["export", "-q", "-o", str(packed), file]) == 0
    assert packed.read_bytes()[:2] == b"\x1f\x8b"
    assert read_recording(packed.read_bytes()) == recording()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], "a.jsonl"), (["-f", "pprof"], "a.pprof"), (["-f", "html"], "a.html"), (["-o", "b.folded"], "b.folded")],
)
def test_a_file_without_a_name_gets_the_suffix_of_its_format(arguments: list[str], expected: str) -> None:
    """What it is called says what it holds."""
    parser = argparse.ArgumentParser()
    Output.add_arguments(parser, "")
    assert str(Output.of(parser.parse_args(arguments), "a").path) == expected


def test_who_has_read_enough_may_close_the_pipe(file: str) -> None:
    """As `head` does: no traceback, no message."""
    for command in (["report", file], ["export", "-f", "collapsed", "-o", "-", file], ["--help"]):
        with subprocess.Popen(
            [*COMMAND, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait() == 0


@pytest.mark.parametrize("command", [["report"], ["stacks", "--json"], ["export", "-f", "pprof", "-o", "-"]])
def test_a_full_disk_behind_stdout_is_one_clear_line(command: list[str], file: str) -> None:
    """No traceback, and nothing from the interpreter's own end."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *command, file], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    reason = b"otel-asyncprof: stdout cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (3, reason)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_characters_gets_question_marks(encoding: str, file: str) -> None:
    """As with LC_ALL=C on an old system; names and arrows are not worth a traceback."""
    for command in (["report", file], ["diff", file, file]):
        done = subprocess.run(
            [*COMMAND, *command], capture_output=True, env=environment(PYTHONIOENCODING=encoding), check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"?" in done.stdout


@pytest.mark.parametrize(("name", "status"), [("a.jsonl", 0), ("missing", 3)])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_change_no_exit_status(closed: str, name: str, status: int, file: str) -> None:
    """As `>&-` leaves them; what would be written there is nobody's."""
    command = f"cd {Path(file).parent} && exec {' '.join(COMMAND)} report {name} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


def test_a_recording_is_read_from_stdin_and_a_page_goes_to_stdout(file: str) -> None:
    """Both as `-`."""
    done = otel_asyncprof("report", "-o", "-", "-", stdin=Path(file).read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["a.pprof", "a.pdf", "report"])
def test_a_page_is_not_written_under_the_name_of_something_else(name: str, file: str, tmp_path: Path, capsys) -> None:
    """Somebody wanted another format."""
    assert main(["report", "-o", str(tmp_path / name), file]) == 2
    assert "is no name for a page, which ends in .html" in capsys.readouterr().err
    assert not (tmp_path / name).exists()


class Page(HTMLParser):
    """Everything in a page by which a browser might load something."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.references += [str(value) for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]
        self._in_script = tag == "script"
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts.append(data)


def test_the_page_holds_everything_and_loads_nothing(file: str, tmp_path: Path, capsys) -> None:
    """A policy forbids the browser whatever it might try; names from the recording cannot end the script."""
    out = tmp_path / "x.html"
    assert main(["report", "-o", str(out), file]) == 0
    text = out.read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.references == []
    assert page.policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|https?://", text)
    (script,) = page.scripts
    data = json.loads(re.search(r"const DATA = (.*);\n", script)[1])  # type: ignore[index]
    assert data["split"] == {"running": 15_000_000, "waiting": 160_000_000, "blocked": 25_000_000}
    assert ["gefährlich;<b>\u2028</script>", "/app/ö dir/a.py", 3, False] in data["frames"]
    assert sum(stack[2] for stack in data["stacks"]) == 200_000_000
    assert [query["statement"] for query in data["queries"]] == ["SELECT * FROM lines"]
    assert [request["name"] for request in data["requests"]] == ["GET /orders"]


def test_the_whole_way_from_a_program_to_a_page_is_three_commands(tmp_path: Path) -> None:
    """As somebody does it for the first time."""
    (tmp_path / "program.py").write_text("import time\ntime.sleep(1)\n")
    assert otel_asyncprof("run", "--no-instrument", "-o", "a.jsonl", "program.py", cwd=tmp_path).returncode == 0
    report = otel_asyncprof("report", "a.jsonl", cwd=tmp_path)
    assert (report.returncode, report.stderr) == (0, "")
    assert "<module> (" in report.stdout
    page = otel_asyncprof("report", "-o", "a.html", "a.jsonl", cwd=tmp_path)
    assert (page.returncode, page.stderr) == (0, "otel-asyncprof: written a.html\n")


def test_a_folder_that_is_read_only_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the file alone would not say where."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)  # to root all else is writable
    with pytest.raises(Failure, match=rf"^a\.jsonl cannot be written: {tmp_path} is not writable$"):
        Output(Path("a.jsonl"), "otlp-json", "wall").check()
