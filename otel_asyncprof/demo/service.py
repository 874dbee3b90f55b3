"""Runs the shop as its own process under `opentelemetry-instrument`, as anybody would run it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections import deque
from pathlib import Path
from typing import Self

SHOP = Path(__file__).parent / "app" / "shop.py"
EXPORT_INTERVAL_SECONDS = 2
START_SECONDS = 60.0  # a busy machine is no reason to fail
STOP_SECONDS = 10.0
KEPT_LOG_LINES = 40
TIMELINE = {
    "OTEL_ASYNCPROF_TIMELINE": "true",
    "OTEL_ASYNCPROF_SAMPLE_ATTRIBUTES": "thread.name,asyncprof.state,thread.id,asyncio.task.name",
}
LISTENING = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")


class ServiceError(Exception):
    """The service did not start; says why."""


class Service:
    """The shop on a free port, sending to an OTLP endpoint, from `with` to the end of its block."""

    def __init__(self, otlp_endpoint: str, *, timeline: bool = False) -> None:
        self._environment = _environment(otlp_endpoint) | (TIMELINE if timeline else {})
        self._log: deque[str] = deque(maxlen=KEPT_LOG_LINES)
        self._listening = threading.Event()
        self.url = ""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            command(),
            cwd=SHOP.parent,  # opentelemetry-instrument lets Python import from here
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read_log, name="service-log", daemon=True)
        self._reader.start()
        try:
            self._listening.wait(START_SECONDS)
            if not self.url:
                raise ServiceError("\n".join(["the service did not start:", *self._log]))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def wait(self) -> None:
        """Until the process ends by itself."""
        self._process.wait()

    def stop(self) -> None:
        """Ends the process as Ctrl-C does, so that it sends what it still holds; kills it when that takes too long."""
        try:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
                self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            self._reader.join()

    def log(self) -> list[str]:
        """The last lines that the service wrote."""
        return list(self._log)

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._log.append(line.rstrip())
                if found := LISTENING.search(line):
                    self.url = found[1]
                    self._listening.set()
        self._listening.set()  # the process has ended: nobody needs to wait any more


def wait_for_export() -> None:
    """Gives a running service the time to send what it has seen."""
    time.sleep(EXPORT_INTERVAL_SECONDS + 1)


def command() -> list[str]:
    """What starts the service; nothing in it is about profiling."""
    return [
        _script("opentelemetry-instrument"),
        _script("uvicorn"),
        "shop:app",
        *("--host", "127.0.0.1", "--port", "0", "--no-access-log", "--no-use-colors"),
    ]


def _script(name: str) -> str:
    """A command of this interpreter's environment, whether or not that is on PATH."""
    found = shutil.which(name, path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    if found is None:
        raise ServiceError(f"the command {name} is not installed beside {sys.executable}")
    return found


def _environment(otlp_endpoint: str) -> dict[str, str]:
    """This environment, with the demo's OpenTelemetry settings in place of any others, but for our own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OTEL_") or name.startswith("OTEL_ASYNCPROF_")
    }
    return kept | {
        "OTEL_SERVICE_NAME": "shop",
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp_endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_PROFILES_EXPORTER": "otlp",
        "OTEL_BSP_SCHEDULE_DELAY": "500",
        "OTEL_ASYNCPROF_INTERVAL": str(EXPORT_INTERVAL_SECONDS),
    }
