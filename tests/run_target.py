"""Runs target programs under capture() and writes what was sampled, and what Python itself says, as JSON.

Reads orders from standard input, one JSON object a line, and answers each with a line that holds its exit status. Every
order runs in a process forked from this one, in which everything is imported and nothing has run yet. Its members:
  target   a module of tests/targets
  loop     asyncio, uvloop or eager
  capture  settled: profiles while every task is suspended · whole: the whole run · own: the target does it
  options  of capture()
  result, errors  files to write
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import opentelemetry.proto.profiles.v1development.profiles_pb2
import opentelemetry.sdk.trace  # noqa: F401
import uvloop
from targets import support

import otel_asyncprof.testing  # noqa: F401
from otel_asyncprof import _native

TIMEOUT_SECONDS = 60
POLL_SECONDS = 0.03
SETTLED_POLLS = 3
SETTLED_PHASE_SECONDS = 0.3


class Conductor:
    """Waits in a loop until no task moves any more, profiles for a while and ends the process."""

    def __init__(self, target: ModuleType, result: str) -> None:
        self._least_tasks = getattr(target, "TASKS", 1)
        self._result = result
        self._seen: dict[str, Any] | None = None
        self._still = 0
        self._phase = support.phase()
        self._loop: asyncio.AbstractEventLoop

    def attend(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        loop.set_exception_handler(self._fail)
        loop.call_soon(self._poll)

    def _fail(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        sys.stderr.flush()
        os._exit(4)

    def _poll(self) -> None:
        support.restore_names()
        now = support.snapshot()
        same = self._seen is not None and self._seen["tasks"] == now["tasks"]
        self._seen, self._still = now, self._still + 1 if same else 0
        if self._still < SETTLED_POLLS or len(now["tasks"]) < self._least_tasks:
            self._loop.call_later(POLL_SECONDS, self._poll)
            return
        support.SNAPSHOTS.append(now)
        self._phase.__enter__()
        self._loop.call_later(SETTLED_PHASE_SECONDS, self._finish)

    def _finish(self) -> None:
        self._phase.__exit__(None, None, None)
        after = support.snapshot()["tasks"]
        if after != support.SNAPSHOTS[0]["tasks"]:
            print(f"tasks moved: {support.SNAPSHOTS[0]['tasks']} -> {after}", file=sys.stderr)
            os._exit(3)
        write(self._result)
        os._exit(0)


def loop_factory(kind: str, conductor: Conductor | None) -> Callable[[], asyncio.AbstractEventLoop]:
    """Makes loops of the wanted kind; the first one is attended by the conductor."""
    waiting = [conductor] if conductor else []

    def make() -> asyncio.AbstractEventLoop:
        loop = uvloop.new_event_loop() if kind == "uvloop" else asyncio.new_event_loop()
        if kind == "eager":
            loop.set_task_factory(asyncio.eager_task_factory)
        if waiting:
            waiting.pop().attend(loop)
        return loop

    return make


def start_target(target: ModuleType, factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """The synchronous entry of every target: the last frame before the loop."""
    if hasattr(target, "run"):
        target.run(factory)
        return
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(target.main())


def held_blocks() -> int | None:
    """How many blocks of memory the extension holds, where it is a build that counts them."""
    counter = getattr(ctypes.CDLL(_native.__file__), "held_blocks", None)
    return ctypes.c_long.in_dll(ctypes.CDLL(_native.__file__), "held_blocks").value if counter else None


def write(result: str) -> None:
    written = {"report": support.REPORT, "snapshots": support.SNAPSHOTS, "held_blocks": held_blocks()}
    with open(result, "w", encoding="utf-8") as file:
        json.dump(written, file, default=dataclasses.asdict)


def prepare(order: dict[str, Any]) -> tuple[ModuleType, Callable[[], asyncio.AbstractEventLoop]]:
    os.dup2(os.open(order["errors"], os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
    signal.alarm(TIMEOUT_SECONDS)
    support.CAPTURE_OPTIONS.update(order["options"])
    target = importlib.import_module(f"targets.{order['target']}")
    conductor = Conductor(target, order["result"]) if order["capture"] == "settled" else None
    return target, loop_factory(order["loop"], conductor)


if __name__ == "__main__":
    gc.collect()
    gc.freeze()  # so that looking for tasks does not go through all that was imported
    for line in sys.stdin:
        child = os.fork()
        if child:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        order = json.loads(line)
        module, factory = prepare(order)
        if order["capture"] == "whole":
            with support.phase():
                start_target(module, factory)
        else:
            start_target(module, factory)
        write(order["result"])
        break
