"""Prints as JSON which attributes of modules and classes are other objects while the profiler runs, and after it."""

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import types
import warnings
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import otel_asyncprof.testing
from otel_asyncprof.instrumentor import AsyncProfInstrumentor

State = dict[str, Any]


def attributes() -> State:
    """Every attribute of every module but ours, and of the classes defined there."""
    found: State = {}
    for name, module in list(sys.modules.items()):
        if type(module) is not types.ModuleType or name.startswith(("otel_asyncprof", "__main__")):
            continue
        for attribute, value in list(vars(module).items()):
            found[f"{name}.{attribute}"] = value
            if isinstance(value, type) and value.__module__ == name:
                found |= {f"{name}.{attribute}.{inner}": each for inner, each in list(vars(value).items())}
    return found


def interpreter() -> State:
    """What can be asked of the interpreter and the process."""
    return {
        "trace": sys.gettrace(),
        "profile": sys.getprofile(),
        "trace of threads": threading.gettrace(),
        "profile of threads": threading.getprofile(),
        "tools": [sys.monitoring.get_tool(tool) for tool in range(6)] if sys.version_info >= (3, 12) else [],
        "garbage collector": (gc.isenabled(), gc.get_threshold(), gc.get_debug(), list(gc.callbacks)),
        "recursion limit": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
        "asyncgen hooks": tuple(sys.get_asyncgen_hooks()),
        "origin depth": sys.get_coroutine_origin_tracking_depth(),
        "finders": (list(sys.meta_path), list(sys.path_hooks), list(sys.path)),
        "warnings": list(warnings.filters),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "signal mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "timers": [
            signal.getitimer(timer) for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
        ],
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "files": sorted(os.listdir("/proc/self/fd")),
        "dict of main": sorted(vars(sys.modules["__main__"])),
    }


def changed(before: State, now: State) -> list[str]:
    """The names under which another value is found."""
    return sorted(name for name, value in before.items() if now[name] != value)


def rebound(before: State, now: State) -> list[str]:
    """The names under which another object is found, or none."""
    return sorted(name for name, value in before.items() if name not in now or now[name] is not value)


async def main() -> dict[str, list[str]]:
    trace.set_tracer_provider(TracerProvider())
    tracer, instrumentor = trace.get_tracer("identities"), AsyncProfInstrumentor()
    # What OpenTelemetry and the interpreter change at the first of anything is changed from here on.
    instrumentor.instrument(enabled=False)
    instrumentor.uninstrument()
    with otel_asyncprof.testing.capture():
        await asyncio.gather(asyncio.sleep(0.05), asyncio.to_thread(os.getpid))
    tasks, before = asyncio.all_tasks(), (attributes(), interpreter())
    with tracer.start_as_current_span("span"):
        instrumentor.instrument(exporter="console")
        assert instrumentor.profiler.is_running
        assert asyncio.all_tasks() == tasks
        await asyncio.gather(asyncio.sleep(0.05), asyncio.to_thread(os.getpid))
        during = (attributes(), interpreter())
    instrumentor.uninstrument()
    await asyncio.gather(*(asyncio.to_thread(each.join) for each in threading.enumerate() if "asyncprof" in each.name))
    after = (attributes(), interpreter())
    return {
        "rebound while it runs": rebound(before[0], during[0]),
        "rebound after it": rebound(before[0], after[0]),
        "changed while it runs": changed(before[1], during[1]),
        "changed after it": changed(before[1], after[1]),
    }


if __name__ == "__main__":
    sys.stdout, console = open(os.devnull, "w"), sys.stdout  # noqa: SIM115 -- the exporter writes there
    result = asyncio.run(main())
    print(json.dumps(result), file=console)
