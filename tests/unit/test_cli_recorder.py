"""What is recorded in a program: spans that are wanted, bounded, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from otel_asyncprof.analysis.spans import read_spans
from otel_asyncprof.cli import recorder
from otel_asyncprof.cli.recorder import RecordingExporter, SpanRecorder
from otel_asyncprof.cli.spool import Spool
from otel_asyncprof.export._base import ProfileExportResult


def provider_with(spans: SpanRecorder, **options: object) -> TracerProvider:
    """A provider whose spans are recorded."""
    provider = TracerProvider(shutdown_on_exit=False, **options)  # type: ignore[arg-type]
    provider.add_span_processor(spans)
    return provider


def end_spans(provider: TracerProvider, *names: str) -> None:
    """Spans that begin and end."""
    for name in names:
        provider.get_tracer("test").start_span(name).end()


def recorded(folder: Path) -> list[str]:
    """The names of the spans in a spool."""
    return [span.name for span in read_spans(Spool(folder).read().traces)]


def test_a_span_is_written_once_with_the_next_export_or_at_the_end(tmp_path: Path) -> None:
    """And its process has a name in the recording."""
    spans = SpanRecorder()
    provider = provider_with(spans)
    exporter = RecordingExporter(Spool(tmp_path), spans, None, running_only=False)
    end_spans(provider, "one", "two")
    assert exporter.export([]) is ProfileExportResult.SUCCESS
    end_spans(provider, "three")
    assert recorded(tmp_path) == ["one", "two"]
    exporter.shutdown()
    exporter.shutdown()
    end_spans(provider, "too late")
    exporter.export([])
    assert recorded(tmp_path) == ["one", "two", "three"]
    (data, *_) = Spool(tmp_path).read().traces
    (pid,) = [a.value.int_value for a in data.resource_spans[0].resource.attributes if a.key == "process.pid"]
    assert pid > 0


def test_spans_that_are_not_sampled_are_not_recorded(tmp_path: Path) -> None:
    """As nobody else gets them either."""
    spans = SpanRecorder()
    end_spans(provider_with(spans, sampler=ALWAYS_OFF), "unseen")
    assert spans.take() == []


def test_too_many_spans_are_counted_and_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Memory is bounded, whatever the program does between two exports."""
    monkeypatch.setattr(recorder, "MAX_WAITING_SPANS", 2)
    spans = SpanRecorder()
    end_spans(provider_with(spans), "one", "two", "three", "four")
    RecordingExporter(Spool(tmp_path), spans, None, running_only=False).shutdown()
    assert recorded(tmp_path) == ["one", "two"]
    assert caplog.messages == ["2 spans were not recorded: too many have ended between two exports"]


def test_the_child_of_a_fork_does_not_write_its_parents_spans_again(tmp_path: Path) -> None:
    """They are in the memory that it has inherited."""
    spans = SpanRecorder()
    end_spans(provider_with(spans), "the parent's")
    exporter = RecordingExporter(Spool(tmp_path), spans, None, running_only=False)
    exporter.after_fork()
    exporter.export([])
    assert recorded(tmp_path) == []


def test_a_spool_that_cannot_be_written_is_a_failure_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not one line for every interval."""
    exporter = RecordingExporter(Spool(tmp_path / "missing"), SpanRecorder(), None, running_only=False)
    assert [exporter.export([b"x"]), exporter.export([b"x"])] == [ProfileExportResult.FAILURE] * 2
    assert caplog.messages == [
        "a part of the profile is lost: the recording cannot be written: No such file or directory"
    ]


def test_what_a_killed_process_has_written_is_read(tmp_path: Path) -> None:
    """Up to the message in the middle of which it was killed."""
    spool, spans = Spool(tmp_path), SpanRecorder()
    end_spans(provider_with(spans), "whole")
    spool.add_traces(spans.take())
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: len(whole) // 2])
    assert recorded(tmp_path) == ["whole"]
