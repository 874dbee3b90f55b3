"""Four loops, three of them in threads of their own, seen by a profiler that is started in three ways."""

import asyncio
import threading
import time
from collections.abc import Callable

from targets.support import SNAPSHOTS, all_tasks, name_me, phase, restore_names, snapshot

LOOPS = 4
DEADLINE_SECONDS = 20.0


class Loops:
    """Runs four loops with three jobs each until it is told to end them."""

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop], way: str) -> None:
        self.started = phase().__enter__() if way == "before any loop" else None
        self._starts_inside = way == "inside a running loop"
        self._factory = loop_factory
        self._ends = [asyncio.Event() for _ in range(LOOPS)]
        self._loops: dict[int, asyncio.AbstractEventLoop] = {}

    async def job(self, name: str, end: asyncio.Event) -> None:
        name_me(name)
        await end.wait()

    async def main(self, number: int) -> None:
        name_me(f"main {number}")
        self._loops[number] = asyncio.get_running_loop()
        if number == 0 and self._starts_inside:
            self.started = phase().__enter__()
        await asyncio.gather(*(self.job(f"job {number}.{each}", self._ends[number]) for each in range(3)))

    def serve(self, number: int) -> None:
        with asyncio.Runner(loop_factory=self._factory) as runner:
            runner.run(self.main(number))

    def settle(self) -> None:
        """Waits until all sixteen tasks rest."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len([task for task in all_tasks() if task._fut_waiter is not None]) < LOOPS * 4:  # type: ignore[attr-defined]
            assert time.monotonic() < deadline, all_tasks()
            time.sleep(0.01)
        time.sleep(0.05)
        restore_names()
        SNAPSHOTS.append(snapshot())

    def end(self) -> None:
        for number, loop in self._loops.items():
            loop.call_soon_threadsafe(self._ends[number].set)


def watch(loops: Loops, threads: list[threading.Thread]) -> None:
    """Beside the loops: starts the profiler if nobody has, looks for a while, and has everything ended."""
    loops.settle()
    started = loops.started or phase().__enter__()
    time.sleep(0.3)
    started.__exit__(None, None, None)
    loops.end()
    for thread in threads:
        thread.join()


def round_of(factory: Callable[[], asyncio.AbstractEventLoop], way: str) -> None:
    loops = Loops(factory, way)
    threads = [threading.Thread(target=loops.serve, args=[each], name=f"loop {each}") for each in range(1, LOOPS)]
    for thread in threads:
        thread.start()
    watcher = threading.Thread(target=watch, args=[loops, threads], name="watcher")
    watcher.start()
    loops.serve(0)
    watcher.join()


def run(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    for way in ("before any loop", "inside a running loop", "from another thread"):
        round_of(loop_factory, way)
