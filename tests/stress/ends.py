"""Programs that are profiled until they end, and what is seen of their end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from integration.applications import environment

TERM, INT, HUP = signal.SIGTERM, signal.SIGINT, signal.SIGHUP
PATIENCE = 120.0

PROLOGUE = """
import asyncio, logging, os, signal, sys, threading, time
logging.basicConfig(format="LOG %(message)s")
from otel_asyncprof import Profiler
def last_moments():
    end = time.thread_time() + 0.15
    while time.thread_time() < end:
        pass
def ready():
    last_moments()
    print("ready", flush=True)
def rest():  # in short sleeps: CPython 3.14.0 alone overlooks one in ten signals that come just before one
    while True:
        time.sleep(0.1)
profiler = Profiler({options})
"""
START = "profiler.start()\n"


def start(code: str, options: str = "", *, stdin: int = subprocess.DEVNULL, **variables: str) -> subprocess.Popen[str]:
    """A process that is about to say that it is ready."""
    return subprocess.Popen(
        [sys.executable, "-c", PROLOGUE.format(options=options) + code],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() | variables,
    )


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    status: int
    stdout: str
    stderr: str
    seconds: float  # from the signals to the end

    @property
    def log(self) -> list[str]:
        """What was logged."""
        return [line for line in self.stderr.splitlines() if line.startswith("LOG ")]


def finish(process: subprocess.Popen[str], signals: tuple[signal.Signals, ...]) -> Outcome:
    """Sends the signals once it is ready, and waits for its end."""
    assert process.stdout is not None
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    with process:
        assert process.stdout.readline() == "ready\n", process.communicate()
        since = time.monotonic()
        for number in signals:
            process.send_signal(number)
        stdout, stderr = process.communicate("\n" if process.stdin else None)
    watchdog.cancel()
    return Outcome(process.returncode, stdout, stderr, time.monotonic() - since)
