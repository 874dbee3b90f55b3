"""File, console and memory."""

import io
import os
import threading
from pathlib import Path

import pytest

from otel_asyncprof.export import InMemoryProfileExporter, ProfileExportResult
from otel_asyncprof.export.console import ConsoleProfileExporter, summary
from otel_asyncprof.export.file import FileProfileExporter, read_profiles
from otel_asyncprof.formats.stack_sample import Frame, StackSample

MESSAGES = [b"", b"x", b"y" * 127, b"z" * 128, b"w" * 70_000]


def test_a_file_gives_back_what_was_written(tmp_path):
    """Over several exports and exporters; lengths of one, two and three bytes."""
    path = tmp_path / "profiles.otlp"
    assert FileProfileExporter(path).export(MESSAGES[:3]) is ProfileExportResult.SUCCESS
    assert FileProfileExporter(path).export(MESSAGES[3:]) is ProfileExportResult.SUCCESS
    assert list(read_profiles(path)) == MESSAGES


def test_exporters_that_share_a_file_do_not_tear_each_others_messages(tmp_path):
    """Each appends all of an interval in one write."""
    path = tmp_path / "profiles.otlp"

    def write(letter: bytes) -> None:
        exporter = FileProfileExporter(path)
        for _ in range(50):
            exporter.export([letter * 3000, letter * 10])

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    messages = list(read_profiles(path))
    assert sorted(messages) == sorted([letter * size for letter in (b"a", b"b", b"c") for size in (3000, 10)] * 50)


@pytest.mark.parametrize("cut", [1, 2, 100])
def test_a_file_that_is_cut_off_gives_the_whole_messages_first(tmp_path, cut):
    """A process may die while it writes."""
    path = tmp_path / "profiles.otlp"
    FileProfileExporter(path).export([b"whole", b"x" * 300])
    os.truncate(path, len(b"whole") + 1 + cut)
    messages = read_profiles(path)
    assert next(messages) == b"whole"
    with pytest.raises(EOFError):
        next(messages)


@pytest.mark.parametrize("content", [b"\xff" * 10, b"\xff\xff\xff\xff\x7f", b"{}"])
def test_what_is_no_such_file_is_said_to_be_none(tmp_path, content):
    """No memory is taken for lengths that cannot be."""
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(EOFError):
        list(read_profiles(path))


def test_the_path_is_that_of_the_variable(tmp_path, monkeypatch):
    """Where none is given."""
    monkeypatch.setenv("OTEL_ASYNCPROF_FILE", str(tmp_path / "x"))
    assert FileProfileExporter().path == tmp_path / "x"
    monkeypatch.delenv("OTEL_ASYNCPROF_FILE")
    assert str(FileProfileExporter().path) == "asyncprof.otlp"


def sample(wall_ns, **fields):
    """A sample with two frames."""
    frames = (Frame("main", "/app.py", 10, 1), Frame("Db.query", "/db.py", 33, 30))
    defaults = {
        "frames": frames,
        "task_name": None,
        "thread_name": "MainThread",
        "thread_id": 1,
        "state": "running",
        "local_root_name": None,
        "trace_id": 0,
        "span_id": 0,
        "cpu_ns": 0,
        "timestamps": (),
    }
    return StackSample(**defaults | fields, wall_ns=wall_ns)


def test_the_summary_shows_the_heaviest_stacks_first():
    """With state, task, span and the line of the leaf."""
    text = summary(
        [
            sample(5_000_000, cpu_ns=1_000_000),
            sample(2_500_000_000, state="waiting", task_name="T", trace_id=10, span_id=11),
            sample(1),
        ],
        max_stacks=2,
    )
    assert text.splitlines() == [
        "profile: 3 stacks, cpu 0.001 s, wall 2.505 s",
        "  wall 2.500 s  cpu 0.000 s  waiting  task T  trace 0000000000000000000000000000000a span 000000000000000b  "
        "main > Db.query (/db.py:33)",
        "  wall 0.005 s  cpu 0.001 s  running  main > Db.query (/db.py:33)",
    ]


def test_the_summary_shows_both_ends_of_a_long_stack_and_nothing_of_imports():
    """A module that imports modules would fill the screen with frames that Python's tracebacks leave out, too."""
    imports = [Frame("_find_and_load", "<frozen importlib._bootstrap>", 1360, 1349)] * 3
    frames = [*(Frame(f"f{number}", "/app.py", number, 1) for number in range(22)), *imports]
    assert summary([sample(0, frames=tuple(frames))]).splitlines()[1].split("  ")[-1] == (
        "f0 > f1 > f2 > f3 > f4 > f5 > … 3 more … > f9 > f10 > f11 > f12 > f13 > f14 > f15 > f16 > f17 > f18 > f19 > "
        "f20 > f21 > _find_and_load (<frozen importlib._bootstrap>:1360)"
    )
    assert "more" not in summary([sample(0, frames=tuple(frames[:20]))])


def test_the_console_exporter_writes_one_summary_per_export(capsys):
    """To what sys.stdout is then, or to its own stream."""
    out = io.StringIO()
    assert ConsoleProfileExporter(out).export([b""]) is ProfileExportResult.SUCCESS
    assert ConsoleProfileExporter().export([b""]) is ProfileExportResult.SUCCESS
    assert out.getvalue() == capsys.readouterr().out == "profile: 0 stacks, cpu 0.000 s, wall 0.000 s\n"


def test_memory_keeps_all_until_cleared():
    """In order."""
    exporter = InMemoryProfileExporter()
    exporter.export([b"1", b"2"])
    exporter.export([b"3"])
    assert exporter.get_finished_requests() == (b"1", b"2", b"3")
    exporter.clear()
    assert exporter.get_finished_requests() == ()
    exporter.shutdown()
    assert exporter.export([b"4"]) is ProfileExportResult.FAILURE
    assert exporter.get_finished_requests() == ()


def test_a_file_that_cannot_be_written_is_named_once_with_its_variable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Twice the same failure is one line."""
    exporter = FileProfileExporter(tmp_path / "missing" / "profile.otlp")
    results = {exporter.export([b"x"]), exporter.export([b"x"])}
    assert results == {ProfileExportResult.FAILURE}
    (record,) = caplog.records
    assert str(tmp_path / "missing" / "profile.otlp") in record.getMessage()
    assert "OTEL_ASYNCPROF_FILE" in record.getMessage()


@pytest.mark.parametrize("closed", [True, False])
def test_a_console_that_is_gone_costs_no_line(closed, monkeypatch):
    """As in a daemon, and in the helper processes of multiprocessing, which close theirs."""
    out = io.StringIO()
    out.close()
    monkeypatch.setattr("sys.stdout", out if closed else None)
    exporter = ConsoleProfileExporter()
    assert exporter.export([b""]) is ProfileExportResult.FAILURE
    assert exporter.last_error == "there is no standard output"
