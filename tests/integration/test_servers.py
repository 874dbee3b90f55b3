"""Servers of several processes, instrumented from outside: each process that serves sends its profiles, to the last."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.applications import INSTRUMENT, PROGRAMS, environment
from integration.collectors import HttpCollector, closed_port
from integration.streams import Streams

WORKERS = 2
ASKING_AT_ONCE = 4
SECONDS = 60.0

# Workers that do not answer their supervisor for some seconds, as on a loaded machine, are killed.
PATIENT = ("--timeout-worker-healthcheck", str(int(SECONDS)))
PROGRAM = "served.py"
UVICORN = ("uvicorn", "served:asgi", "--workers", str(WORKERS), *PATIENT, "--log-level", "warning", "--port")
GUNICORN = ("gunicorn", "--workers", str(WORKERS), "--log-level", "error", "--graceful-timeout", "10")
SYNC = (*GUNICORN, "served:wsgi")
ASYNC = (*GUNICORN, "--worker-class", "uvicorn_worker.UvicornWorker", "served:asgi")


@dataclass(frozen=True)
class Kind:
    """How a server is started, and what is done to it."""

    command: tuple[str, ...]
    work: str = "works_in_wsgi"
    reloads: bool = False


KINDS = {
    "uvicorn": Kind(UVICORN, "works_in_asgi", reloads=True),
    "gunicorn sync": Kind((*SYNC, "--bind"), reloads=True),
    "gunicorn sync preload": Kind((*SYNC, "--preload", "--bind")),
    "gunicorn uvicorn": Kind((*ASYNC, "--bind"), "works_in_asgi", reloads=True),
    "gunicorn uvicorn preload": Kind((*ASYNC, "--preload", "--bind"), "works_in_asgi"),
}


class Server:
    """A running server and what it has answered."""

    def __init__(self, kind: Kind, collector: HttpCollector) -> None:
        self.port = closed_port()
        module, *arguments = kind.command
        bind = f"127.0.0.1:{self.port}" if arguments[-1] == "--bind" else str(self.port)
        # The interval is an hour: all of it is in last profiles.
        variables = {"OTEL_EXPERIMENTAL_RESOURCE_DETECTORS": "process,service_instance,otel"}
        self.process = subprocess.Popen(
            [INSTRUMENT, sys.executable, "-W", "ignore", "-m", module, *arguments, bind],
            env=environment(collector, **variables),
            cwd=PROGRAMS,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.answers: Counter[int] = Counter()

    def ask(self) -> bool:
        """Whether a process has answered."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=5) as answer:
                pid = int(answer.read())
        except (OSError, urllib.error.URLError):
            return False
        self.answers[pid] += 1
        return True

    def ask_until(self, condition: Callable[[], bool]) -> None:
        """Asks on and on, in several threads so that nobody has all the work; fails after a long time."""
        deadline = time.monotonic() + SECONDS
        with ThreadPoolExecutor(ASKING_AT_ONCE) as threads:
            while not condition():
                assert self.process.poll() is None, "the server has ended"
                assert time.monotonic() < deadline, self.answers
                if not all(threads.map(lambda _: self.ask(), range(ASKING_AT_ONCE))):
                    time.sleep(0.05)

    def stop(self) -> str:
        """By SIGTERM, as everybody stops it; what it wrote to its standard error."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=SECONDS)[1]


@contextmanager
def running(kind: Kind, collector: HttpCollector) -> Iterator[Server]:
    """A server that is gone afterwards, with all its processes."""
    server = Server(kind, collector)
    try:
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait()


def has_gone(pid: int) -> bool:
    """Whether a process is no more."""
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("name", KINDS)
def test_a09_each_serving_process_sends_its_own_profiles(name: str) -> None:
    """Its last one too, when a reload replaces it and when all are stopped."""
    kind = KINDS[name]
    with HttpCollector() as collector, running(kind, collector) as server:
        server.ask_until(lambda: len(server.answers) >= WORKERS)
        first = set(server.answers)
        if kind.reloads:
            server.process.send_signal(signal.SIGHUP)
            server.ask_until(lambda: len(server.answers) >= 2 * WORKERS and all(map(has_gone, first)))
        stderr = server.stop()
        assert collector.wait_for(lambda: set(server.answers) <= Streams(collector.profiles).pids), stderr
        streams = Streams(collector.profiles)
    assert streams.who_did(kind.work) == set(server.answers)
    assert all(len(instances) == 1 for instances in streams.instances().values())
    assert len(set().union(*streams.instances().values())) == len(streams.pids)
    ids = streams.profile_ids()
    assert len(ids) == len(set(ids))
    assert "Traceback" not in stderr
