"""Runs a program as __main__ beside a profiler, or at rate 0 beside none, and writes how often that has looked.

usage: beside_the_profiler.py RATE FILE PROGRAM [ARGUMENT ...]
"""

import runpy
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import Profiler
from otel_asyncprof.export import InMemoryProfileExporter

rate, file = int(sys.argv[1]), sys.argv[2]
del sys.argv[:3]
trace.set_tracer_provider(TracerProvider())
exporter = InMemoryProfileExporter()
profiler = Profiler(exporter=exporter, rate=rate or 100, enabled=rate > 0, interval=0.2)
assert profiler.start() is (rate > 0)
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    profiler.stop()
    stats = profiler.stats()
    assert stats is not None
    with open(file, "w", encoding="utf-8") as output:
        print(stats["ticks"], file=output)
