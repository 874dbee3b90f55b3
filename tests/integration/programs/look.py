"""Tells what it sees of itself: a process that is profiled differs from one that is not."""

import asyncio
import atexit
import json
import signal
import threading
from pathlib import Path

import opentelemetry.context


def threads() -> list[str]:
    return sorted((task / "comm").read_text().rstrip() for task in Path("/proc/self/task").iterdir())


def caught_signals() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return int(line.split()[1], 16)
    raise LookupError("SigCgt")


async def main() -> None:
    await asyncio.sleep(0.1)


asyncio.run(main())
context = type(opentelemetry.context._RUNTIME_CONTEXT)
seen = {
    "sampler": "otel_asyncprof" in threads(),
    "export thread": "otel-asyncprof-export" in {thread.name for thread in threading.enumerate()},
    "context": f"{context.__module__}.{context.__qualname__}",
    "handles SIGSEGV": bool(caught_signals() >> (signal.SIGSEGV - 1) & 1),
    "handles SIGBUS": bool(caught_signals() >> (signal.SIGBUS - 1) & 1),
}
all_there_is = {"threads": threads(), "signals": caught_signals(), "exit callbacks": atexit._ncallbacks()}
print(json.dumps([seen, all_there_is]))
