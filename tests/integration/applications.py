"""Runs programs in their own process, instrumented from outside; environment variables alone set them up."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import opentelemetry.instrumentation
from integration.collectors import Collector

PROGRAMS = Path(__file__).parent / "programs"
TIMEOUT_SECONDS = 60.0
MAX_CONCURRENT = 4
INSTRUMENT = str(Path(sysconfig.get_path("scripts")) / "opentelemetry-instrument")
AUTO_INSTRUMENTATION = str(Path(opentelemetry.instrumentation.__path__[0]) / "auto_instrumentation")
# Importing the others takes longer than the programs run.
OTHERS = sorted({each.name for each in entry_points(group="opentelemetry_instrumentor")} - {"asyncprof"})

# opentelemetry-instrument; or by PYTHONPATH, as the Kubernetes operator does it, which is quicker; or not at all.
Launch = Literal["command", "injected", "plain"]


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    pid: int
    status: int
    stdout: str
    stderr: str
    seconds: float  # from its first line of output to its end

    @property
    def lines(self) -> list[str]:
        """What was written to the standard error."""
        return self.stderr.splitlines()


def environment(collector: Collector | None = None, /, **variables: str) -> dict[str, str]:
    """This environment with no other OTEL_ variables than these; traces and profiles go to the collector."""
    chosen = {
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": ",".join(OTHERS),
        "OTEL_ASYNCPROF_INTERVAL": "3600",
    }
    if collector is None:
        chosen |= {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
    else:
        chosen |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": collector.protocol}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return inherited | chosen | variables


class Application:
    """A running program with pipes; leaving the block without a result kills it."""

    def __init__(self, program: str, *arguments: str, env: Mapping[str, str], launch: Launch = "command") -> None:
        variables = dict(env)
        if launch == "injected":
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, [AUTO_INSTRUMENTATION, env.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [*([INSTRUMENT] if launch == "command" else []), sys.executable, str(PROGRAMS / program), *arguments],
            env=variables,
            cwd=PROGRAMS,  # which opentelemetry-instrument puts before PYTHONPATH
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._watchdog = threading.Timer(TIMEOUT_SECONDS, self._process.kill)
        self._watchdog.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._watchdog.cancel()

    def end(self) -> Ended:
        """Ends its input, which most programs wait for, and waits for its own end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdin = None
        first_line = self._process.stdout.readline()
        since = time.monotonic()
        stdout, stderr = self._process.communicate()
        seconds = time.monotonic() - since
        return Ended(self._process.pid, self._process.returncode, first_line + stdout, stderr, seconds)


def run(program: str, *arguments: str, env: Mapping[str, str], launch: Launch = "command") -> Ended:
    """Runs a program to its end."""
    with Application(program, *arguments, env=env, launch=launch) as application:
        return application.end()


def run_all(*jobs: Callable[[], Ended]) -> list[Ended]:
    """Runs several programs at a time: most of it is the wait for a processor."""
    with ThreadPoolExecutor(MAX_CONCURRENT) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


def plugin(folder: Path, code: str) -> str:
    """A PYTHONPATH with code that opentelemetry-instrument runs in the application, before any instrumentation."""
    (folder / "planted_plugin.py").write_text(f"def prepare():\n{_indented(code)}\n", encoding="utf-8")
    metadata = folder / "planted_plugin-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: planted-plugin\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(
        "[opentelemetry_pre_instrument]\nplanted = planted_plugin:prepare\n", encoding="utf-8"
    )
    return str(folder)


def _indented(code: str) -> str:
    return textwrap.indent(textwrap.dedent(code).strip(), "    ")
