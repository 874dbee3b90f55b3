"""A subinterpreter tries to start the profiler, before the main interpreter does or while that is profiled.

usage: interpreters.py first|later MODULE   (of the interpreter that has subinterpreters)
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import Any

TRY_AND_LET_GO = """
import logging, os
from otel_asyncprof import Profiler
class Lines(logging.Handler):
    def emit(self, record):
        os.write({pipe}, record.getMessage().encode() + b"\\n")
logging.getLogger("otel_asyncprof").addHandler(Lines())
profiler = Profiler(exporter="console")
assert not profiler.start()
assert profiler.shutdown()
"""
WAIT_SECONDS = 60


def try_in_a_subinterpreter() -> str:
    """What is said there; it shares the lock and all modules' state in C, as those of mod_wsgi do."""
    module: Any = importlib.import_module(sys.argv[2])
    other = module.create(isolated=False) if sys.version_info < (3, 13) else module.create("legacy")
    readable, writable = os.pipe()
    failure = module.run_string(other, TRY_AND_LET_GO.format(pipe=writable))
    assert failure is None, failure
    os.close(writable)
    with os.fdopen(readable) as pipe:
        return pipe.read()


def is_looked_at() -> bool:
    """Whether the main interpreter is, from now on."""
    from otel_asyncprof import _native

    begin, end = _native.stats()["ticks"], time.monotonic() + WAIT_SECONDS
    while _native.stats()["ticks"] < begin + 3 and time.monotonic() < end:
        sum(range(1000))
    return _native.stats()["ticks"] >= begin + 3


def main(order: str) -> None:
    said = try_in_a_subinterpreter() if order == "first" else ""
    from otel_asyncprof import Profiler
    from otel_asyncprof.export.in_memory import InMemoryProfileExporter

    profiler = Profiler(rate=1000, exporter=InMemoryProfileExporter())
    profiler.start_or_raise()
    if order == "later":
        said = try_in_a_subinterpreter()
    seen = is_looked_at()
    print(json.dumps({"said": said, "seen": seen, "complete": profiler.shutdown()}), flush=True)
    os._exit(0)  # an interpreter that is left over is CPython's concern


main(sys.argv[1])
