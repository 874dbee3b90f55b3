"""The fixed program whose looks are counted; run by instructions.py under callgrind.

usage: python instructions_program.py LIBRARY
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib.machinery
import importlib.util
import json
import random
import sys
import threading
from collections.abc import Callable

LIBRARY = sys.argv[1]
GROUPS, TASKS_PER_GROUP = 100, 10
THREADS, THREAD_DEPTH = 10, 5
WINDOW_SLOTS, WINDOW_LOOKS = 128, 64  # whole turns of a task set of up to 8192 slots, whose sizes are powers of two
LOOKS = 5  # counted for each state of the program, so that one look's chance evens out

# The library holds the whole extension and takes its place.
_loader = importlib.machinery.ExtensionFileLoader("otel_asyncprof._native", LIBRARY)
_spec = importlib.util.spec_from_loader("otel_asyncprof._native", _loader)
assert _spec is not None
sys.modules["otel_asyncprof._native"] = importlib.util.module_from_spec(_spec)

from opentelemetry.sdk.trace import TracerProvider  # noqa: E402

from otel_asyncprof import _anchors, _native, _runtime_context, span_processor  # noqa: E402

_harness = ctypes.CDLL(LIBRARY)
_harness.instructions_samples.restype = ctypes.c_uint64
counted: dict[str, int] = {}  # state -> looks
tracer_provider = TracerProvider()
tracer = tracer_provider.get_tracer("instructions")


def open_harness() -> None:
    """What the profiler does at its start, without its threads."""
    anchors = _anchors.collect()
    _runtime_context.install()
    span_processor.ensure_registered(tracer_provider)
    _native.prepare(anchors=anchors)
    features = _native.FEATURE_TASKS | _native.FEATURE_AWAITERS | _native.FEATURE_SPANS
    attributes = _native.ATTRIBUTE_THREAD_NAME | _native.ATTRIBUTE_STATE
    assert _harness.instructions_open(_anchors.asyncio_directory().encode(), features, attributes)


def look(looks: int, samples: int, *, counted: bool = True) -> None:
    """Looks so often; every look must give as many samples as this program has stacks."""
    before = _harness.instructions_samples()
    (_harness.instructions_count_looks if counted else _harness.instructions_look)(looks)
    seen = _harness.instructions_samples() - before
    assert seen == looks * samples, f"{seen} samples in {looks} looks, not {samples} in each"


def write(state: str, looks: int) -> None:
    """Ends the count of one state of the program."""
    _harness.instructions_write(state.encode())
    counted[state] = looks


class Gates:
    """Two events, one of which is shut; the tasks stand before it."""

    def __init__(self) -> None:
        self.events = (asyncio.Event(), asyncio.Event())
        self.shut = 0

    async def turn(self) -> None:
        """Every task goes on to the other gate."""
        passed, self.shut = self.shut, 1 - self.shut
        self.events[self.shut].clear()
        self.events[passed].set()
        for _ in range(3):
            await asyncio.sleep(0)


async def go_round(gates: Gates) -> None:
    """Stands at one of two lines."""
    while True:
        await gates.events[0].wait()
        await gates.events[1].wait()


async def serve(gates: Gates) -> None:
    """The third coroutine from below."""
    await go_round(gates)


async def handle(gates: Gates) -> None:
    """A leaf task: four coroutines, and a span of its own."""
    with tracer.start_as_current_span("handle"):
        await serve(gates)


async def group(gates: Gates) -> None:
    """A task that waits for its children."""
    with tracer.start_as_current_span("group"):
        await asyncio.gather(*(handle(gates) for _ in range(TASKS_PER_GROUP)))


async def suspended_tasks() -> None:
    """Looks at 1000 waiting tasks in several states."""
    samples = GROUPS * TASKS_PER_GROUP + 1
    gates = Gates()
    groups = [asyncio.create_task(group(gates)) for _ in range(GROUPS)]
    for _ in range(3):
        await asyncio.sleep(0)
    look(1, samples)
    write("first look at 1000 tasks", 1)
    look(2, samples, counted=False)
    look(LOOKS, samples)
    write("1000 tasks unchanged", LOOKS)
    for _ in range(LOOKS):
        await gates.turn()
        look(1, samples)
    write("1000 tasks changed", LOOKS)
    assert _harness.instructions_count_looks_at_rest(LOOKS)
    write("1000 tasks at rest", LOOKS)
    _harness.instructions_limit_slots(WINDOW_SLOTS)
    _harness.instructions_look(2)
    _harness.instructions_count_looks(WINDOW_LOOKS)
    write(f"window of {WINDOW_SLOTS} slots over 1000 tasks", WINDOW_LOOKS)
    for task in groups:
        task.cancel()
    await asyncio.gather(*groups, return_exceptions=True)


def deep(depth: int, then: Callable[[], object]) -> None:
    """Some frames, and what they wait for."""
    if depth:
        deep(depth - 1, then)
    else:
        then()


def idle_threads() -> None:
    """Looks at threads that wait for a lock; the window stays as narrow as it is, so that no tasks count."""
    lock = threading.Lock()
    with lock:
        threads = [
            threading.Thread(target=deep, args=(THREAD_DEPTH, lock.acquire), daemon=True) for _ in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            assert _harness.instructions_wait_for_sleep(thread.native_id)
        look(2, THREADS + 1, counted=False)
        look(LOOKS, THREADS + 1)
        write("10 idle threads", LOOKS)


def main() -> None:
    """All states, each in a file of its own."""
    random.seed(0)  # the ids of the spans
    open_harness()
    asyncio.run(suspended_tasks())
    idle_threads()
    print(json.dumps(counted))


main()
