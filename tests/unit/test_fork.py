"""Forks in the middle of something: the child is left neither hanging nor half started."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from integration.applications import environment
from integration.collectors import SILENT, GrpcCollector, HttpCollector
from integration.streams import Streams

from otel_asyncprof import Profiler
from otel_asyncprof.export import InMemoryProfileExporter, ProfileExportResult
from otel_asyncprof.export.otlp_grpc import OTLPProfileExporter

CHILD_SECONDS = 30


def in_a_child(check):
    """Whether check() is true in a forked child, which has so many seconds."""
    child = os.fork()
    if child == 0:
        signal.alarm(CHILD_SECONDS)
        result = False
        try:
            result = check()
        finally:
            os._exit(0 if result else 1)
    return os.waitpid(child, 0)[1] == 0


def can_start_and_stop(old):
    """A new profiler, and the one that was forked in the middle of a step."""

    def check():
        ok = not old.is_running
        new = Profiler(exporter=InMemoryProfileExporter())
        ok = ok and new.start() and new.stop()
        return ok and old.start() and old.shutdown()

    return check


class Gate:
    """A step that waits within until it is let go on."""

    def __init__(self, native, step):
        self.native, self.original, self.pid = native, getattr(native, step), os.getpid()
        self.reached, self.open = threading.Event(), threading.Event()
        setattr(native, step, self)

    def __call__(self, *arguments, **options):
        if os.getpid() == self.pid:
            self.reached.set()
            assert self.open.wait(30)
        return self.original(*arguments, **options)


@pytest.mark.parametrize("step", ["start", "run_self_check"])
def test_a_fork_during_a_start_leaves_the_child_ready_for_one(native, monkeypatch, step):
    """The thread that starts is not there; the parent's start goes on."""
    profiler = Profiler(exporter=InMemoryProfileExporter())
    if step == "run_self_check":
        gate = Gate(native, step)
        monkeypatch.setattr("otel_asyncprof._profiler._self_check.run", gate)
    else:
        gate = Gate(native, step)
    starting = threading.Thread(target=profiler.start)
    starting.start()
    assert gate.reached.wait(30)
    assert in_a_child(can_start_and_stop(profiler))
    gate.open.set()
    starting.join()
    assert profiler.is_running
    assert profiler.shutdown()


def test_a_fork_during_a_stop_leaves_the_child_ready_for_a_start(native):
    """The thread that stops is not there; the parent's stop ends."""
    profiler = Profiler(exporter=InMemoryProfileExporter())
    assert profiler.start()
    gate = Gate(native, "stop")
    results = []
    stopping = threading.Thread(target=lambda: results.append(profiler.stop()))
    stopping.start()
    assert gate.reached.wait(30)
    assert in_a_child(can_start_and_stop(profiler))
    gate.open.set()
    stopping.join()
    assert results == [True]


def test_a_child_in_which_nothing_can_be_started_can_be_started_later(native, warnings_logged):
    """One line; the parent goes on."""
    profiler = Profiler(exporter=InMemoryProfileExporter())
    assert profiler.start()

    def check():
        native.fail_at = None
        ok = not profiler.is_running and warnings_logged() == [
            "otel_asyncprof does not profile this child process: RuntimeError: start failed"
        ]
        return ok and profiler.start() and profiler.shutdown()

    native.fail_at = "start"
    assert in_a_child(check)
    assert profiler.is_running


FORKED_AMID_A_REQUEST = """
import gc, os, queue, signal, sys, threading
from otel_asyncprof import Profiler, _native
profiler = Profiler(interval=3600)
profiler.start_or_raise()
def work():
    begin = _native.stats()["ticks"]
    while _native.stats()["ticks"] < begin + 10:
        pass
work()
assert profiler.force_flush()
(pool,) = [each for each in gc.get_objects() if isinstance(each, queue.LifoQueue)]
locked, forked = threading.Event(), threading.Event()
def take_a_connection():
    with pool.mutex:
        locked.set()
        forked.wait()
thread = threading.Thread(target=take_a_connection)
thread.start()
locked.wait()
pid = os.fork()
if pid == 0:
    signal.alarm({seconds})
    work()
    sys.exit(0)
forked.set()
print(pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_a_fork_while_a_connection_is_taken_from_the_pool_leaves_the_child_able_to_end():
    """urllib3 closes what is in its pools at exit, and takes their locks for that."""
    code = FORKED_AMID_A_REQUEST.format(seconds=CHILD_SECONDS)
    with HttpCollector() as collector:
        env = environment(collector, PYTHONWARNINGS="ignore", OTEL_EXPERIMENTAL_RESOURCE_DETECTORS="process,otel")
        ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        child, status = map(int, ended.stdout.split())
        assert (status, ended.stderr) == (0, "")
        assert child in Streams(collector.profiles).pids


def test_a_fork_ends_a_grpc_call_that_lasts_and_the_profile_is_sent_again():
    """gRPC does not survive a fork in the middle of a call; a receiver that is silent must not hold up the fork."""
    with GrpcCollector() as collector:
        collector.answers.append(SILENT)
        exporter = OTLPProfileExporter(collector.endpoint, timeout=60)
        results = []
        exporting = threading.Thread(target=lambda: results.append(exporter.export([b""])))
        exporting.start()
        assert collector.wait_for(lambda: len(collector.profiles) == 1)
        assert in_a_child(lambda: exporter._channel is None and not exporter._unusable)
        assert collector.wait_for(lambda: len(collector.profiles) == 2)
        exporting.join()
        assert results == [ProfileExportResult.SUCCESS]
        exporter.shutdown()
