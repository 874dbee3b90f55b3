"""Start, stop, second start, refusals: with a stand-in for the extension."""

import os
import signal
import sys
import threading
import types

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import Profiler, ProfilerConfig, ProfilerUnavailable, _platform, _profiler, _self_check
from otel_asyncprof.export import InMemoryProfileExporter, ProfileExporter
from otel_asyncprof.testing import capture

STARTED = ["anchors", "self_check", "install", "register", "ignore", "start"]


def make(exporter=None, **options):
    """A profiler whose export thread never wakes by itself."""
    return Profiler(ProfilerConfig(interval=3600, **options), exporter=exporter or InMemoryProfileExporter())


def steps(native):
    """The calls, without those that the export thread repeats at times of its own."""
    seen = []
    for call in native.calls:
        if call != "register" or "register" not in seen:
            seen.append(call)
    return seen


def test_start_and_stop_are_steps_in_a_fixed_order(native):
    """The sampler ends before the last collection, and spans are put back last."""
    exporter = InMemoryProfileExporter()
    profiler = make(exporter)
    assert profiler.start() is True
    assert profiler.is_running
    assert profiler.stop() is True
    assert not profiler.is_running
    assert steps(native) == [*STARTED, "stop", "collect", "uninstall"]
    assert exporter.get_finished_requests() == (b"request 1",)


def test_the_sampler_gets_the_options(native):
    """Each under the extension's own name."""
    make(rate=50, link="local_root", max_frames=64, sample_attributes=("thread.id", "asyncio.task.name")).start()
    assert native.started_with == {
        "rate": 50,
        "max_frames": 64,
        "link_local_root": True,
        "link_unsampled": False,
        "loop_frames": False,
        "timeline": False,
        "attributes": 12,
        "features": 7,
        "anchors": {"anchor": 1},
        "asyncio_directory": "/asyncio",
        "cpu_budget": 0.01,
        "no_signal_handlers": False,
        "tasks_per_tick": 0,
    }


def test_the_export_thread_is_left_out_of_the_profile(native):
    """From the sampler's first look on."""
    make().start()
    assert native.ignored_threads == ["otel-asyncprof-export"]
    assert native.calls.index("ignore") < native.calls.index("start")


def test_a_second_start_does_nothing(native, warnings_logged):
    """One line for each; the first profiler goes on."""
    first, second = make(), make()
    assert first.start() is True
    assert first.start() is True
    assert second.start() is False
    assert second.stop() is True
    assert first.is_running
    assert native.calls.count("start") == 1
    assert warnings_logged() == [
        "otel_asyncprof is already running; this start does nothing",
        "otel_asyncprof is already running in this process; this start does nothing",
    ]


def test_a_profiler_can_be_started_again(native):
    """Each run has its own last collection."""
    profiler = make()
    for _ in range(20):
        assert profiler.start() is True
        assert profiler.stop() is True
    assert (native.calls.count("collect"), native.calls.count("uninstall")) == (20, 20)


def test_after_shutdown_it_stays_off(native, warnings_logged):
    """Shutdown twice is harmless; the exporter is shut down too."""
    exporter = InMemoryProfileExporter()
    profiler = make(exporter)
    profiler.start()
    assert profiler.shutdown() is True
    assert profiler.shutdown() is True
    assert exporter.export([b""]).name == "FAILURE"
    assert profiler.start() is False
    assert warnings_logged() == [
        "otel_asyncprof does not profile this process: this profiler was shut down",
    ]


def test_as_a_context_manager_it_runs_for_the_block(native):
    """And is shut down at its end, whatever happened."""
    exporter = InMemoryProfileExporter()
    profiler = make(exporter)

    def block():
        with profiler:
            assert profiler.is_running
            raise KeyError

    with pytest.raises(KeyError):
        block()
    assert not profiler.is_running
    assert exporter.get_finished_requests() == (b"request 1",)


@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("anchors", ["anchors"]),
        ("self_check", ["anchors", "self_check"]),
        ("install", ["anchors", "self_check", "install"]),
        ("register", ["anchors", "self_check", "install", "register"]),
        ("start", STARTED),
    ],
)
def test_a_start_that_fails_leaves_nothing_behind(native, step, done, warnings_logged):
    """At whichever step; one line says why, and a later start may succeed."""
    native.fail_at = step
    profiler = make()
    assert profiler.start() is False
    assert [call for call in steps(native) if call != "collect"] == [*done, "stop", "uninstall"]
    assert warnings_logged() == [f"otel_asyncprof does not profile this process: RuntimeError: {step} failed"]
    native.fail_at = None
    assert profiler.start() is True


def test_a_system_without_another_thread_is_a_refusal(native, monkeypatch, warnings_logged):
    """The sampler is not started."""

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_profiler.ResourceReader, "read", lambda self, provider: (b"", ""))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert make().start() is False
    assert native.calls == [*STARTED[:-2], "stop", "uninstall"]
    assert warnings_logged() == [
        "otel_asyncprof does not profile this process: RuntimeError: can't start new thread",
    ]


REFUSALS = [
    ("sys.implementation", "PyPy", "it works on CPython only, this is PyPy; OTEL_ASYNCPROF_ENABLED=false .+"),
    ("version", (3, 10), r"CPython [\d.]+ is not supported; .+"),
    ("free-threaded", "td", "the free-threaded build of CPython is not supported; use the default build"),
    ("gettotalrefcount", int, "debug and trace-refs builds of CPython are not supported; use the default build"),
    ("getobjects", list, "debug and trace-refs builds of CPython are not supported; use the default build"),
    (
        "_jit",
        types.SimpleNamespace(is_enabled=lambda: True),
        "CPython's JIT compiler is not supported; PYTHON_JIT=0 switches it off",
    ),
    ("platform", "darwin", "it works on 64-bit Linux only, this is darwin .+; OTEL_ASYNCPROF_ENABLED=false .+"),
]


@pytest.mark.parametrize(("what", "value", "reason"), REFUSALS)
def test_an_unsupported_interpreter_is_a_refusal(native, monkeypatch, what, value, reason):
    """Nothing is touched."""
    if what == "sys.implementation":
        monkeypatch.setattr(_platform.platform, "python_implementation", lambda: value)
    elif what == "version":
        monkeypatch.setattr(
            _platform,
            "SUPPORTED_VERSIONS",
            tuple(version for version in _platform.SUPPORTED_VERSIONS if version != sys.version_info[:2]),
        )
        reason = r"CPython [\d.]+ is not supported; use one that is \(3\.\d+(, 3\.\d+)+\)"
    elif what == "free-threaded":
        monkeypatch.setattr(_platform.sys, "abiflags", value)
    else:
        monkeypatch.setattr(_platform.sys, what, value, raising=False)
    with pytest.raises(ProfilerUnavailable, match=rf"^{reason}$"):
        make().start_or_raise()
    monkeypatch.undo()
    assert native.calls == []


def test_an_extension_that_cannot_be_loaded_is_a_refusal(native, monkeypatch, warnings_logged):
    """The application runs on."""
    monkeypatch.setattr(_profiler, "_import_error", ImportError("no such symbol"))
    profiler = make()
    assert profiler.start() is False
    assert profiler.stats() is None
    assert warnings_logged() == [
        "otel_asyncprof does not profile this process: its extension cannot be loaded (no such symbol); "
        "install otel-asyncprof anew, with the pip of this interpreter"
    ]


def test_threads_that_read_wrong_are_a_refusal(native, warnings_logged):
    """The line names the version and what does not match."""
    native.check["threads"] = "frame.previous"
    assert make().start() is False
    version = ".".join(map(str, sys.version_info[:3]))
    assert warnings_logged() == [
        "otel_asyncprof does not profile this process: "
        f"the memory of CPython {version} is not laid out as expected: frame.previous; "
        "a newer otel-asyncprof may know it, else please report this line"
    ]


def test_memory_that_is_short_is_no_unknown_layout():
    """The check needs some; nobody is asked to report the version of his interpreter."""

    def check():
        raise MemoryError

    with pytest.raises(ProfilerUnavailable, match=r"^memory is short$"):
        _self_check._outcome(check)


def test_any_other_part_that_reads_wrong_is_left_out_alone(native, warnings_logged):
    """One line names the version and what does not match; the rest runs."""
    native.check |= {"awaiters": "fut_callbacks", "spans": "ctx_vars"}
    assert make().start() is True
    assert native.started_with["features"] == native.FEATURE_TASKS
    version = ".".join(map(str, sys.version_info[:3]))
    assert warnings_logged() == [
        f"otel_asyncprof on CPython {version} goes on with less: no awaiters: fut_callbacks; no spans: ctx_vars; "
        "a newer otel-asyncprof may know it, else please report this line"
    ]


@pytest.mark.parametrize(
    "variables",
    [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_ASYNCPROF_ENABLED": "false"}, {"OTEL_PROFILES_EXPORTER": "none"}],
)
def test_switched_off_it_leaves_the_process_untouched(native, monkeypatch, variables, warnings_logged):
    """Without a line."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Profiler().start() is False
    assert (native.calls, warnings_logged()) == ([], [])


def test_an_exporter_that_cannot_be_made_is_a_refusal(native, monkeypatch, warnings_logged):
    """Told in the exporter's words."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE", "/no/such/file")
    assert Profiler().start() is False
    assert warnings_logged() == ["otel_asyncprof does not profile this process: /no/such/file cannot be read"]


def test_the_resource_is_read_again_at_each_export(native):
    """A fork gives the provider's resource another process id; a provider may be set late."""
    provider = TracerProvider(resource=Resource({"a": 1}, schema_url="http://schema/1"))
    profiler = Profiler(ProfilerConfig(interval=3600), exporter=InMemoryProfileExporter(), tracer_provider=provider)
    profiler.start()
    profiler.force_flush()
    provider._resource = Resource({"a": 2}, schema_url="http://schema/2")
    profiler.stop()
    first, second = native.collected_with
    assert first["resource"] == resource_bytes("a", 1)
    assert second["resource"] == resource_bytes("a", 2)
    assert (first["resource_schema_url"], second["resource_schema_url"]) == ("http://schema/1", "http://schema/2")


def resource_bytes(key, number):
    """The official encoding of a resource with one attribute."""
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource as Message

    return Message(attributes=[KeyValue(key=key, value=AnyValue(int_value=number))]).SerializeToString()


def test_the_status_says_what_became_of_the_profiles(native, monkeypatch):
    """Running or not, sent or not, and why."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    profiler = Profiler(ProfilerConfig(interval=3600, exporter="otlp_proto_grpc"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:sesame@127.0.0.1:1")
    assert not profiler.status().running
    profiler.start()
    profiler.force_flush()
    assert profiler.status() == _profiler.ProfilerStatus(
        running=True,
        exported_intervals=0,
        failed_intervals=1,
        exporter="otel_asyncprof.export.otlp_grpc.OTLPProfileExporter('http://127.0.0.1:1')",
        last_error="gRPC UNAVAILABLE",
        stats={**native.stats(), "rate": 100.0, "sampler_share": 0.008},
    )
    profiler.stop()
    assert not profiler.status().running


class Hanging(ProfileExporter):
    """An exporter that never comes back by itself."""

    def __init__(self):
        self.arrived = threading.Semaphore(0)
        self.free = threading.Event()
        self.calls = []

    def export(self, requests):
        self.arrived.release()
        self.free.wait(30)
        raise ConnectionError

    def finish_soon(self):
        self.calls.append("finish_soon")

    def shutdown(self, timeout_millis=0):
        self.calls.append("shutdown")


def test_shutdown_does_not_wait_for_an_exporter_that_hangs(native, warnings_logged):
    """It is told to hurry first; one line says that the last profile is lost."""
    exporter = Hanging()
    profiler = make(exporter)
    profiler.start()
    assert profiler.shutdown(timeout_millis=100) is False
    exporter.free.set()
    assert exporter.calls[0] == "finish_soon"
    assert set(exporter.calls[1:]) == {"shutdown"}
    assert warnings_logged() == ["the last profile could not be exported (0.1 s were allowed)"]


def test_a_signal_handler_may_stop_the_profiler_during_its_start(native, monkeypatch):
    """The lock it needs is held by the very thread it interrupts."""
    profiler = make()
    outcome = []
    monkeypatch.setattr(_profiler._native, "start", lambda **options: signal.raise_signal(signal.SIGUSR1))
    previous = signal.signal(signal.SIGUSR1, lambda *_: outcome.append(profiler.shutdown()))
    try:
        profiler.start()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert outcome == [True]
    assert not profiler.is_running
    assert native.calls[-1] == "uninstall"


def test_a_child_of_a_fork_profiles_itself(native):
    """With a sampler, a thread and a resource of its own; the parent goes on."""
    exporter = InMemoryProfileExporter()
    profiler = make(exporter)
    profiler.start()
    profiler.force_flush()
    child = os.fork()
    if child == 0:
        native_calls = native.calls[native.calls.index("collect") + 1 :]
        ok = profiler.stop() and exporter.get_finished_requests() == (b"request 2",)
        ok = ok and [call for call in native_calls if call != "register"] == ["after_fork_in_child", "ignore", "start"]
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert profiler.is_running
    assert profiler.stop() is True
    assert exporter.get_finished_requests() == (b"request 1", b"request 2")


def test_capture_refuses_where_profiling_cannot_be(native):
    """A test must not pass for want of a profile."""
    native.check["threads"] = "frame.previous"
    with pytest.raises(ProfilerUnavailable, match=r"frame\.previous"), capture():
        raise AssertionError("the block must not run")


def test_capture_ignores_the_environment(native, monkeypatch):
    """A test sees the same on every machine."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("OTEL_ASYNCPROF_LOOP_FRAMES", "true")
    profiler = None
    native.collect = lambda **arguments: {"requests": []}
    native.stats = lambda: (
        dict.fromkeys(
            ["ticks", "samples", "faults", "tasks_seen", "tasks_visited", "threads_seen", "sampler_cpu_ns"], 0
        )
        | {"elapsed_ns": 0, "visit_ns": 0, "tick_ns": 0, "window": 1.0}
        | {"export_cpu_ns": 0, "copy_method": "guarded", "drops": {"too_deep": 0}}
    )
    with capture(rate=50) as profile:
        profiler = _profiler._active()
        assert profiler.is_running
    assert (native.started_with["rate"], native.started_with["loop_frames"]) == (50, False)
    assert native.started_with["attributes"] == 31
    assert (profile.samples, profile.requests, profile.stats.drops) == ([], (), {})
