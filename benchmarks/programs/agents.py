"""How each profiler is started and stopped in the process it profiles: as its documentation says, at its defaults."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_PTRACER = 0x59616D61
_ANY_PROCESS = ctypes.c_ulong(-1)
_STOP_SECONDS = 60


class Agent:
    """No profiler; the others override what they need."""

    sampler_pid: int | None = None

    def __init__(self, directory: Path, sink: str) -> None:
        self.directory = directory
        self.sink = sink
        self.counted_from = 0.0

    def start(self) -> None:
        """Before the program: sets the tracer provider and starts what runs inside the process."""
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider

        trace.set_tracer_provider(TracerProvider())
        self.counted_from = time.monotonic()

    def ready(self) -> None:
        """The program stands: starts what runs outside the process."""

    def mark(self) -> None:
        """The window opens: what was seen until now should not count."""

    def stop(self) -> dict[str, Any]:
        """Has everything delivered; the real time that this covers, and what the profiler says of itself."""
        return {"seconds": time.monotonic() - self.counted_from}


class Ours(Agent):
    """otel_asyncprof, to a file."""

    def start(self) -> None:
        super().start()
        from otel_asyncprof import Profiler
        from otel_asyncprof.export.file import FileProfileExporter

        self.path = self.directory / "profile.otlp"
        self.profiler = Profiler(exporter=FileProfileExporter(self.path))
        self.profiler.start_or_raise()

    def mark(self) -> None:
        if not self.profiler.force_flush():
            raise RuntimeError("the profile of the warm-up could not be exported")
        self.path.unlink(missing_ok=True)
        self.before = self._numbers()
        self.counted_from = time.monotonic()

    def stop(self) -> dict[str, Any]:
        result = super().stop()
        after = self._numbers()
        result["window"] = {key: value - self.before.get(key, 0) for key, value in after.items()}
        result["stats"] = self.profiler.stats()
        self.profiler.shutdown(30_000)
        return result

    def _numbers(self) -> dict[str, float]:
        stats: dict[str, Any] = {**(self.profiler.stats() or {})}
        return {key: value for key, value in stats.items() if isinstance(value, int | float)}


class DatadogTracer(Agent):
    """ddtrace's tracer behind the OpenTelemetry API, without its profiler and without an agent."""

    def start(self) -> None:
        settings = {
            "DD_TRACE_OTEL_ENABLED": "true",
            "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
            "DD_REMOTE_CONFIGURATION_ENABLED": "false",
            "DD_TRACE_STARTUP_LOGS": "false",
            "DD_PROFILING_OUTPUT_PPROF": str(self.directory / "ddtrace"),
            "DD_PROFILING_STACK_ENABLED": "true",
            "DD_PROFILING_MEMORY_ENABLED": "false",
            "DD_PROFILING_LOCK_ENABLED": "false",
            "DD_PROFILING_EXCEPTION_ENABLED": "false",
            "DD_PROFILING_PYTORCH_ENABLED": "false",
        }
        os.environ.update(settings)
        from ddtrace.opentelemetry import TracerProvider
        from ddtrace.trace import TraceFilter, tracer
        from opentelemetry import trace

        class DropAll(TraceFilter):  # type: ignore[misc]
            """There is no agent to send traces to."""

            def process_trace(self, trace: Any) -> None:
                return None

        tracer.configure(trace_processors=[DropAll()])
        trace.set_tracer_provider(TracerProvider())
        self.counted_from = time.monotonic()


class Datadog(DatadogTracer):
    """ddtrace's stack collector, to pprof files, with its fast copy active from the start."""

    def start(self) -> None:
        super().start()
        from ddtrace.internal.datadog.profiling.stack import _stack
        from ddtrace.profiling import Profiler

        _stack._set_fast_copy_warmup_seconds(0)  # its tests' way; else 15 s of slow copies come first
        self.profiler = Profiler()
        self.profiler.start()
        self.is_fast = _stack.fast_copy_memory_active

    def mark(self) -> None:
        self.counted_from = time.monotonic()
        self.counted_from_unix_ns = time.time_ns()

    def stop(self) -> dict[str, Any]:
        result = super().stop() | {"from_unix_ns": self.counted_from_unix_ns, "fast_copy": self.is_fast()}
        self.profiler.stop()
        return result


class Pyroscope(Agent):
    """pyroscope-io, to an HTTP sink."""

    def start(self) -> None:
        super().start()
        import pyroscope

        if not pyroscope.configure(application_name="benchmark", server_address=self.sink):
            raise RuntimeError("pyroscope.configure() returned false")

    def stop(self) -> dict[str, Any]:
        import pyroscope

        result = super().stop()
        pyroscope.shutdown()
        return result


class Beacon(Agent):
    """beacon-profiling, OTLP over HTTP to a sink."""

    def start(self) -> None:
        super().start()
        os.environ["OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL"] = "http/protobuf"
        os.environ["OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"] = f"{self.sink}/beacon"
        from opentelemetry.sdk.extension.profiling import Profiler

        self.profiler = Profiler()
        self.profiler.start()

    def mark(self) -> None:
        self.counted_from = time.monotonic()
        self.counted_from_unix_ns = time.time_ns()

    def stop(self) -> dict[str, Any]:
        result = super().stop() | {"from_unix_ns": self.counted_from_unix_ns}
        result["buffer"] = str(self.profiler.buffer_statistics)
        self.profiler.stop()
        return result


class Echion(Agent):
    """echion, started as its bootstrap does it. Its output is a stream: what is written in the window counts."""

    interval_us = 1000

    def start(self) -> None:
        super().start()
        self.path = self.directory / "profile.mojo"
        os.environ["ECHION_OUTPUT"] = str(self.path)
        os.environ["ECHION_INTERVAL"] = str(self.interval_us)
        from echion.bootstrap import start

        start()

    def mark(self) -> None:
        self.counted_from = time.monotonic()
        self.offset = self.path.stat().st_size

    def stop(self) -> dict[str, Any]:
        result = super().stop() | {"from_offset": self.offset}
        from echion.bootstrap import stop

        stop()
        return result


class Echion100Hz(Echion):
    """echion at the rate of the others."""

    interval_us = 10_000


class External(Agent):
    """A sampler in a process of its own that attaches to this one when the program stands."""

    command: tuple[str, ...] = ()

    def ready(self) -> None:
        # Yama lets a process be traced by its ancestors only, unless it says otherwise. EINVAL: there is no Yama.
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY_PROCESS, 0, 0, 0)
        tool = Path(sys.prefix, "bin", self.command[0])
        names = {"pid": str(os.getpid()), "output": str(self.directory / "profile.txt")}
        arguments = [argument.format(**names) for argument in self.command[1:]]
        with (self.directory / "sampler.log").open("wb") as log:
            self.process = subprocess.Popen([tool, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.sampler_pid = self.process.pid
        self.counted_from = time.monotonic()

    def mark(self) -> None:
        self._must_run()

    def stop(self) -> dict[str, Any]:
        self._must_run()
        result = super().stop()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(_STOP_SECONDS)
        return result

    def _must_run(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.process.wait(0)
            log = (self.directory / "sampler.log").read_text(errors="replace").strip()
            raise RuntimeError(f"{self.command[0]} ended with status {status}: {log[-300:]}")


class PySpy(External):
    """py-spy record, in the one format that keeps all stacks."""

    command = ("py-spy", "record", "--pid", "{pid}", "--format", "raw", "--output", "{output}")


class Austin(External):
    """austin at its default interval of 100 us."""

    command = ("austin", "--output={output}", "--pid={pid}")


class Austin100Hz(External):
    """austin at the rate of the others."""

    command = ("austin", "--interval=10ms", "--output={output}", "--pid={pid}")


AGENTS: dict[str, type[Agent]] = {
    "none": Agent,
    "ours": Ours,
    "ddtrace": Datadog,
    "ddtrace-tracer": DatadogTracer,
    "pyroscope": Pyroscope,
    "py-spy": PySpy,
    "echion": Echion,
    "echion-100hz": Echion100Hz,
    "austin": Austin,
    "austin-100hz": Austin100Hz,
    "beacon": Beacon,
}
