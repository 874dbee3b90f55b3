"""How a process ends that is profiled: one last profile, in time, with the exit status it would have had."""

import os
import subprocess
import sys
import threading
import time

import pytest

from otel_asyncprof.formats.stack_sample import stack_samples

LOADED = 40  # seconds: what a loaded machine may add; without an end to the wait it would be the 60 of run()

PROLOGUE = """
import logging, sys, time
logging.basicConfig(format="LOG %(message)s")
from otel_asyncprof import Profiler
Profiler(interval=3600, {options}).start()
def busy():
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        pass
busy()
"""

ENDS = {
    "by itself": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an exception": ("raise KeyError", 1),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", -2),
    "an explicit shutdown": ("import gc, otel_asyncprof._profiler as p; p._active().shutdown()", 0),
    "threads that outlive the main thread": ("import threading; threading.Thread(target=busy).start()", 0),
}


def run(code, options="", **environment):
    """Ends with status, log lines and seconds."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    before = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE.format(options=options) + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=clean | environment,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("LOG ")]
    return done.returncode, lines, time.monotonic() - before, done.stderr


@pytest.mark.parametrize("how", ENDS)
def test_however_a_process_ends_its_last_profile_is_sent_once(receiver, how):
    """With what was seen in its last moments, and the status is its own."""
    code, status = ENDS[how]
    ended = run(code, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert ended[:2] == (status, [])
    (got,) = receiver.received
    assert any(sample.functions[-1] == "busy" for sample in stack_samples([got.body]))


@pytest.mark.parametrize("options", ["", "exporter='otlp_proto_grpc'"])
def test_a_collector_that_is_down_delays_the_end_by_the_timeout(options):
    """One line; the status is its own."""
    status, lines, seconds, _ = run(
        "sys.exit(3)", options, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", OTEL_EXPORTER_OTLP_TIMEOUT="1"
    )
    assert status == 3
    assert seconds < LOADED
    assert len(lines) == 1
    assert lines[0].startswith("LOG a profile could not be sent to http://127.0.0.1:1")


def test_a_collector_that_asks_for_patience_is_not_waited_for(receiver, reply):
    """Ten minutes are beyond any timeout."""
    receiver.replies.append(reply(503, {"retry-after": "600"}))
    status, lines, seconds, _ = run("sys.exit(3)", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert (status, len(lines), len(receiver.received)) == (3, 1, 1)
    assert seconds < LOADED


def test_a_collector_that_never_answers_costs_five_seconds_at_most(receiver, reply):
    """The interpreter ends while the export thread hangs in its socket, and does so cleanly."""
    never = threading.Event()
    receiver.replies.append(reply(wait_for=never))
    status, lines, seconds, stderr = run("sys.exit(3)", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    never.set()
    assert (status, lines) == (3, ["LOG the last profile could not be exported (5.0 s were allowed)"])
    assert seconds < LOADED
    assert "Fatal" not in stderr


def test_the_last_profile_goes_before_the_last_spans(receiver):
    """The profiler was started after the provider was made, so its end comes first."""
    code = """
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
class Last(SpanProcessor):
    def shutdown(self):
        print("LOG spans", file=sys.stderr, flush=True)
provider = TracerProvider()
provider.add_span_processor(Last())
from otel_asyncprof.export import ProfileExporter, ProfileExportResult
class First(ProfileExporter):
    def export(self, requests):
        print("LOG profile", file=sys.stderr, flush=True)
        return ProfileExportResult.SUCCESS
Profiler(exporter=First()).start()
busy()
"""
    assert run(code, "enabled=False")[:2] == (0, ["LOG profile", "LOG spans"])


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_ASYNCPROF_ENABLED": "false"},
        {"OTEL_PROFILES_EXPORTER": "none"},
    ],
)
def test_switched_off_a_process_is_left_as_it_is(receiver, variables):
    """No thread, no handler, no line, no profile."""
    code = """
import signal, threading, opentelemetry.context as c
assert threading.active_count() == 1
assert type(c._RUNTIME_CONTEXT).__module__ == "opentelemetry.context.contextvars_context"
assert len(__import__("os").listdir("/proc/self/task")) == 1
"""
    assert run(code, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **variables)[:2] == (0, [])
    assert receiver.received == []


def test_an_extension_that_cannot_be_loaded_costs_one_line():
    """The application runs on with the status that is its own."""
    code = """
import subprocess
without = "import sys; sys.modules['otel_asyncprof._native'] = None; import otel_asyncprof.instrumentor as i; "
without += "i.AsyncProfInstrumentor().instrument(); i.AsyncProfInstrumentor().uninstrument(); sys.exit(3)"
done = subprocess.run([sys.executable, "-c", without], stderr=subprocess.PIPE, text=True)
print("LOG " + done.stderr, file=sys.stderr, end="")
sys.exit(done.returncode)
"""
    status, lines, _, _ = run(code, "enabled=False")
    assert status == 3
    (line,) = lines
    assert line.startswith("LOG otel_asyncprof does not profile this process: its extension cannot be loaded (")


def test_a_bad_variable_costs_one_line_and_nothing_else(receiver):
    """The application runs, profiled with the default."""
    ended = run("sys.exit(3)", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_ASYNCPROF_RATE="fast")
    assert ended[:2] == (
        3,
        ["LOG OTEL_ASYNCPROF_RATE='fast' is not allowed (allowed: 1 to 1000 per second); the default is used"],
    )
    assert len(receiver.received) == 1


def test_at_the_very_end_nobody_waits_for_a_thread_that_stands_still():
    """Daemon threads stop for good where they are, in the middle of a start too: a finalizer may then call anything."""
    code = """
import otel_asyncprof._profiler as p
class Holder:
    profiler = Profiler(exporter="console")
    def __del__(self, file=sys.stderr):
        print("LOG", self.profiler.start(), self.profiler.stop(), self.profiler.shutdown(), file=file)
holder = Holder()
import threading
held = threading.Event()
names = {"lock": p._lifecycle, "held": held, "sleep": time.sleep}  # of its own: those of the program are to go
threading.Thread(target=exec, args=("with lock: held.set(); sleep(1000)", names), daemon=True).start()
held.wait()
"""
    status, lines, _, stderr = run(code, "enabled=False")
    refusal = "LOG otel_asyncprof does not profile this process: the interpreter is ending"
    assert (status, lines) == (0, [refusal, "LOG False True True"]), stderr
