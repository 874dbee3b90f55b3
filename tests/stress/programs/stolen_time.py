"""A thread and a task move on while all CPU clocks stand still, as short runs look where a hypervisor steals time."""

from __future__ import annotations

import asyncio
import ctypes
import json
import threading

from counting import LIBRARY, profiler, ticks, wait_for, watch_extension

from otel_asyncprof.export import ProfileExporter, ProfileExportResult

AT_REST = 20  # ticks: long enough for the sampler to take it for rest
MOST_TICKS = 300  # until what has moved must have been seen

moves = [threading.Event(), threading.Event()]
at = {"thread": 0, "task": 0}


class Keeping(ProfileExporter):
    """All requests, as hexadecimal digits."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def export(self, requests: list[bytes]) -> ProfileExportResult:
        self.requests += [request.hex() for request in requests]
        return ProfileExportResult.SUCCESS


def thread_before() -> None:
    moves[0].wait()


def thread_after() -> None:
    at["thread"] = 1
    moves[1].wait()


def plain() -> None:
    thread_before()
    thread_after()


async def task_before(event: asyncio.Event) -> None:
    await event.wait()


async def task_after(event: asyncio.Event) -> None:
    at["task"] = 1
    await event.wait()


async def task(events: list[asyncio.Event]) -> None:
    await task_before(events[0])
    await task_after(events[1])


def main() -> None:
    events = [asyncio.Event(), asyncio.Event()]
    loop = asyncio.new_event_loop()
    threading.Thread(target=plain, name="plain", daemon=True).start()
    threading.Thread(target=lambda: loop.run_until_complete(task(events)), name="loop", daemon=True).start()
    watch_extension()
    exporter = Keeping()
    with profiler(exporter, interval=3600):
        wait_for(lambda: ticks() > AT_REST)
        ctypes.c_bool.in_dll(LIBRARY, "stop_clocks").value = True
        stopped = ticks()
        wait_for(lambda: ticks() > stopped + AT_REST)
        moves[0].set()
        loop.call_soon_threadsafe(events[0].set)
        wait_for(lambda: at == {"thread": 1, "task": 1})
        moved = ticks()
        wait_for(lambda: ticks() > moved + MOST_TICKS)
    print(json.dumps({"requests": exporter.requests}), flush=True)


main()
