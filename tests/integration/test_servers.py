"""Servers of several processes, instrumented from outside: each process that serves sends its profiles, to the last."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from integration.applications import INSTRUMENT, PROGRAMS, environment
from integration.collectors import HttpCollector
from integration.streams import Streams

WORKERS = 2
ASKING_AT_ONCE = 4
SECONDS = 60.0

UVICORN = ("uvicorn", "served:asgi", "--workers", str(WORKERS), "--log-level", "warning", "--port")
GUNICORN = ("gunicorn", "--workers", str(WORKERS), "--log-level", "error", "--graceful-timeout", "10")
SYNC = (*GUNICORN, "served:wsgi")
ASYNC = (*GUNICORN, "--worker-class", "uvicorn_worker.UvicornWorker", "served:asgi")
SERVERS = {
    "uvicorn": UVICORN,
    "gunicorn sync": (*SYNC, "--bind"),
    "gunicorn sync preload": (*SYNC, "--preload", "--bind"),
    "gunicorn uvicorn": (*ASYNC, "--bind"),
    "gunicorn uvicorn preload": (*ASYNC, "--preload", "--bind"),
}
WORK = {"wsgi": "works_in_wsgi", "asgi": "works_in_asgi"}


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Server:
    """A running server and what it has answered."""

    def __init__(self, command: tuple[str, ...], collector: HttpCollector) -> None:
        self.port = free_port()
        bind = f"127.0.0.1:{self.port}" if command[-1] == "--bind" else str(self.port)
        module, *arguments = command
        self.process = subprocess.Popen(
            [INSTRUMENT, sys.executable, "-W", "ignore", "-m", module, *arguments, bind],
            env=environment(collector, OTEL_EXPERIMENTAL_RESOURCE_DETECTORS="process,service_instance,otel"),
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
def running(command: tuple[str, ...], collector: HttpCollector) -> Iterator[Server]:
    """A server that is gone afterwards, with all its processes."""
    server = Server(command, collector)
    try:
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait()


def has_gone(pid: int) -> bool:
    """Whether a process is no more."""
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("name", SERVERS)
def test_each_serving_process_sends_its_own_profiles_to_the_last(name: str) -> None:
    """Those that a reload replaces, too; nothing was due before the end, so that all of it is in last profiles."""
    command = SERVERS[name]
    work = WORK["wsgi" if "served:wsgi" in command else "asgi"]
    with HttpCollector() as collector, running(command, collector) as server:
        server.ask_until(lambda: sum(count >= 5 for count in server.answers.values()) == WORKERS)
        first = set(server.answers)
        server.process.send_signal(signal.SIGHUP)
        server.ask_until(
            lambda: sum(count >= 5 for pid, count in server.answers.items() if pid not in first) == WORKERS
            and all(map(has_gone, first))
        )
        stderr = server.stop()
        assert collector.wait_for(lambda: set(server.answers) <= Streams(collector.profiles).pids), stderr
        streams = Streams(collector.profiles)
    assert len(server.answers) == 2 * WORKERS
    assert {pid for pid in streams.pids if work in streams.functions(pid)} == set(server.answers)
    for pid, answers in server.answers.items():
        seconds = sum(sample.wall_ns for sample in streams.samples(pid) if work in sample.functions) / 1e9
        assert seconds > 0.05 * answers / 2, (pid, seconds, answers)
    assert all(len(instances) == 1 for instances in streams.instances().values())
    assert len(set().union(*streams.instances().values())) == len(streams.pids)
    ids = streams.profile_ids()
    assert len(ids) == len(set(ids))
    assert "Traceback" not in stderr
