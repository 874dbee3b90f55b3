"""Raises a signal at every line of a start and a stop, and says where something was left behind."""

import linecache
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

import opentelemetry.context

import otel_asyncprof._profiler as profiler_module
from otel_asyncprof import Profiler, _native
from otel_asyncprof.export import ProfileExporter, ProfileExportResult

PACKAGE = os.path.dirname(profiler_module.__file__)
MODULES = tuple(
    os.path.join(PACKAGE, name) for name in ("_profiler.py", "_exit.py", "_runtime_context.py", "export/_periodic.py")
)
CONTEXT = opentelemetry.context._RUNTIME_CONTEXT


class Exporter(ProfileExporter):
    """Takes all."""

    def export(self, requests: Any) -> ProfileExportResult:
        return ProfileExportResult.SUCCESS


exporter = Exporter()
lines, at, action = 0, -1, sys.argv[1]
current: Profiler


def trace(frame: FrameType, event: str, argument: object) -> Any:
    """Counts lines; raises the signal at one of them."""
    global lines
    path = frame.f_code.co_filename
    if not path.startswith(MODULES):
        return None
    # Where a block of `with` is left the interpreter looks for signals only after the lock is released.
    if event == "line" and not linecache.getline(path, frame.f_lineno).lstrip().startswith("with "):
        lines += 1
        if lines == at:
            signal.raise_signal(signal.SIGINT)
    return trace


def handler(*_: object) -> None:
    """What the application does about the signal."""
    sys.settrace(None)
    if action == "raise":
        raise KeyboardInterrupt
    current.stop() if action == "stop" else current.shutdown()


def start_and_stop() -> None:
    """Once, with the signal somewhere."""
    global current, lines
    lines, current = 0, Profiler(interval=3600, exporter=exporter)
    sys.settrace(trace)
    try:
        current.start()
        current.stop()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)


def left_behind() -> list[str]:
    """What is not as it was before the first start."""
    for thread in threading.enumerate():
        if thread.name.startswith("otel"):
            thread.join(10)
    found = {
        "context": opentelemetry.context._RUNTIME_CONTEXT is not CONTEXT,
        "sampler": _native.is_running(),
        "thread": threading.active_count() != 1,
        "signal": signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL,
        "active": profiler_module._active is not None,
    }
    return [name for name, is_left in found.items() if is_left]


profiler_module._logger.disabled = True  # refusals are many
signal.signal(signal.SIGINT, handler)
start_and_stop()
start_and_stop()
total, step = lines, int(sys.argv[2])
for at in range(1, total + 1, step):
    start_and_stop()
    current.stop()
    if bad := left_behind():
        print("line", at, "of", total, "leaves", bad)
        break
    following = Profiler(interval=3600, exporter=exporter)
    if not (following.start() and following.stop()):
        print("line", at, "of", total, "keeps others from starting")
        break
else:
    print("nothing is left behind")
