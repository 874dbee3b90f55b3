"""The export thread: every interval, on request, and one last time."""

import threading
import time

import pytest
from opentelemetry import context

from otel_asyncprof._exit import ExitWatch
from otel_asyncprof.export import ProfileExporter, ProfileExportResult, _thread_stack
from otel_asyncprof.export._periodic import PeriodicExport
from otel_asyncprof.export._sdk_transport import suppress_instrumentation

NEVER = 3600.0


class Exporter(ProfileExporter):
    """Keeps what it gets; waits first when it is told to; fails or raises when it is told to."""

    def __init__(self):
        self.exported = []
        self.threads = set()
        self.arrived = threading.Semaphore(0)
        self.hold = threading.Event()
        self.hold.set()
        self.error = None
        self.result = ProfileExportResult.SUCCESS

    def export(self, requests):
        self.threads.add(threading.current_thread().name)
        self.arrived.release()
        self.hold.wait(30)
        if self.error:
            raise self.error
        self.exported.append(list(requests))
        return self.result


class Source:
    """Every collect() gives the next number."""

    def __init__(self):
        self.count = 0
        self.stopped = False
        self.empty = False

    def stop(self):
        self.stopped = True

    def collect(self):
        self.count += 1
        return [] if self.empty else [b"%d" % self.count]


@pytest.fixture
def source():
    """What is collected."""
    return Source()


@pytest.fixture
def exporter():
    """Where it goes."""
    return Exporter()


@pytest.fixture
def periodic(source, exporter):
    """Makes running export threads and ends them."""
    made = []

    def make(interval=NEVER, prepare=lambda: None, settle=lambda: True):
        export = PeriodicExport(source.collect, exporter, interval, prepare, settle, ExitWatch(False, source.stop))
        export.start()
        made.append(export)
        return export

    yield make
    exporter.hold.set()
    for each in made:
        each.stop(5)


def test_each_interval_is_exported(periodic, exporter):
    """In order, by one thread of our own name."""
    running = periodic(interval=0.02)
    for _ in range(3):
        assert exporter.arrived.acquire(timeout=5)
    assert running.stop(5) is True
    assert exporter.exported[:3] == [[b"1"], [b"2"], [b"3"]]
    assert exporter.threads == {"otel-asyncprof-export"}


def test_a_flush_exports_at_once(periodic, exporter):
    """And returns when that is done."""
    running = periodic()
    assert running.force_flush(5) is True
    assert exporter.exported == [[b"1"]]


def test_the_end_exports_exactly_once(periodic, exporter):
    """However often it is asked for."""
    running = periodic()
    assert running.stop(5) is True
    assert running.stop(5) is True
    assert running.force_flush(5) is False
    assert exporter.exported == [[b"1"]]


def test_an_interval_without_samples_is_not_sent(periodic, exporter, source):
    """And is no failure."""
    source.empty = True
    running = periodic()
    assert running.force_flush(5) is True
    assert (exporter.exported, running.exported_intervals, running.failed_intervals) == ([], 0, 0)


def test_a_flush_waits_no_longer_than_it_says(periodic, exporter):
    """The exporter hangs; the caller does not."""
    exporter.hold.clear()
    running = periodic()
    before = time.monotonic()
    assert running.force_flush(0.1) is False
    assert running.stop(0.1) is False
    assert time.monotonic() - before < 2
    assert not running.has_ended


def test_a_flush_during_an_export_waits_for_the_next_one(periodic, exporter):
    """What was seen after the running collection must be in it."""
    exporter.hold.clear()
    running = periodic()
    results = []
    first = threading.Thread(target=lambda: results.append(running.force_flush(5)))
    first.start()
    assert exporter.arrived.acquire(timeout=5)
    second = threading.Thread(target=lambda: results.append(running.force_flush(5)))
    second.start()
    while running._asked < 2:
        time.sleep(0.001)
    exporter.hold.set()
    first.join(5)
    second.join(5)
    assert results == [True, True]
    assert exporter.exported == [[b"1"], [b"2"]]


def test_a_failed_export_makes_the_flush_fail(periodic, exporter):
    """And is counted; the next one may succeed."""
    exporter.result = ProfileExportResult.FAILURE
    running = periodic()
    assert running.force_flush(5) is False
    exporter.result = ProfileExportResult.SUCCESS
    assert running.force_flush(5) is True
    assert (running.exported_intervals, running.failed_intervals) == (1, 1)


def test_an_exporter_that_raises_does_not_end_the_thread(periodic, exporter, warnings_logged):
    """One line with the type: the text may hold a secret."""
    exporter.error = RuntimeError("sesame")
    running = periodic()
    assert running.force_flush(5) is False
    assert running.force_flush(5) is False
    assert running.last_error == "RuntimeError"
    exporter.error = None
    assert running.force_flush(5) is True
    assert running.last_error == ""
    assert warnings_logged() == ["profiles of one interval are lost: Exporter raised RuntimeError"]


def test_nothing_of_an_export_is_traced(periodic, exporter):
    """The thread runs with instrumentation suppressed, under the key that instrumentations ask for."""
    seen = []
    exporter.export = lambda requests: seen.append(
        (context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY), context.get_value("suppress_instrumentation"))
    )
    running = periodic(prepare=suppress_instrumentation)
    running.force_flush(5)
    assert seen == [(True, True)]
    assert context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY) is None


def test_a_thread_that_never_begins_is_not_waited_for(periodic, monkeypatch):
    """The system has made it, and it has found no memory to run in; it is none of the living."""
    for name in ("_start_new_thread", "_start_joinable_thread"):
        monkeypatch.setattr(threading, name, lambda *_, **__: None, raising=False)
    monkeypatch.setattr(_thread_stack, "BEGIN_SECONDS", 0.01)
    before = threading.enumerate()
    with pytest.raises(RuntimeError, match=r"^its export thread does not begin$"):
        periodic()
    assert threading.enumerate() == before


def test_what_was_left_of_the_start_is_tried_until_it_is_done(periodic):
    """Then no more: the thread sleeps until the next interval."""
    outcomes = iter([False, False, True])
    done = threading.Event()

    def settle():
        outcome = next(outcomes)
        if outcome:
            done.set()
        return outcome

    running = periodic(settle=settle)
    assert done.wait(5)
    assert running.stop(5) is True
    assert list(outcomes) == []
