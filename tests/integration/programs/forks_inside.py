"""Forks where its argument says while a loop has tasks; the child waits, and tells what it was seen doing."""

import asyncio
import json
import os
import sys
import threading
import time

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import Profiler
from otel_asyncprof.export import InMemoryProfileExporter
from otel_asyncprof.formats.stack_sample import stack_samples

tracer = trace.get_tracer("shop")


async def of_the_parent() -> None:
    await asyncio.Event().wait()


async def waits_in_a_loop() -> None:
    await asyncio.sleep(0.3)


def waits() -> None:
    time.sleep(0.3)


def child(span_id: int) -> None:
    exporter.clear()
    waits()
    asyncio.run(waits_in_a_loop())
    profiler.stop(30_000)
    seen = [
        [sample.functions, sample.thread_name, sample.span_id == span_id]
        for sample in stack_samples(exporter.get_finished_requests())
        if sample.wall_ns > 100_000_000
    ]
    print(json.dumps(sorted(seen)), flush=True)


def fork() -> None:
    with tracer.start_as_current_span("inherited") as span:
        pid = os.fork()
        if pid == 0:
            try:
                child(span.get_span_context().span_id)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


async def main(place: str) -> None:
    tasks = [asyncio.create_task(of_the_parent()) for _ in range(3)]
    await asyncio.sleep(0)
    if place == "coroutine":
        fork()
    else:
        await asyncio.to_thread(fork)
    for task in tasks:
        task.cancel()


def start_the_loop(place: str) -> None:
    asyncio.run(main(place))


trace.set_tracer_provider(TracerProvider())
exporter = InMemoryProfileExporter()
profiler = Profiler(exporter=exporter, interval=3600, cpu_budget=1.0)
profiler.start_or_raise()
if sys.argv[1] == "main":
    threading.Thread(target=asyncio.run, args=(of_the_parent(),), daemon=True).start()
    fork()
else:
    start_the_loop(sys.argv[1])
