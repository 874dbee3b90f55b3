"""An event loop that runs nothing by itself: it drives one task by hand to where it waits, for readers to look at."""

import asyncio
import asyncio.futures
import asyncio.tasks
import contextlib
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from . import _native

# A name of our own: a task without one would use up a number of the application's "Task-N".
PROBE_NAME = "otel_asyncprof probe"


@contextlib.contextmanager
def _entered(loop: "ProbeLoop") -> Generator[None]:
    """Where threads keep tasks, one runs only in its thread's loop, and while no other does: ours steps aside."""
    outer = asyncio._get_running_loop()
    swap: Any = getattr(asyncio.tasks, "_swap_current_task", None)  # 3.12 cannot swap where there is no current task
    task = swap(outer, None) if outer is not None and _native.TASKS_IN_THREADS else None
    asyncio._set_running_loop(loop)  # type: ignore[arg-type]
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
        if task is not None:
            swap(outer, task)


class ProbeLoop:
    """What the C task and future ask of a loop."""

    def __init__(self) -> None:
        self._scheduled: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def get_debug(self) -> bool:
        """Never in debug mode."""
        return False

    def call_soon(self, callback: Callable[..., Any], *arguments: Any, context: Any = None) -> None:
        """Keeps the callback for run_scheduled()."""
        self._scheduled.append((callback, arguments))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Says nothing: what goes wrong in a probe shows in the comparison."""

    def create_future(self) -> "asyncio.Future[None]":
        """A future of this loop."""
        return asyncio.futures._CFuture(loop=self)  # type: ignore[attr-defined, no-any-return]

    def create_task(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """A C task of this loop, whatever task factory the application has."""
        return asyncio.tasks._CTask(coroutine, loop=self, name=PROBE_NAME)  # type: ignore[attr-defined, no-any-return]

    def run_scheduled(self) -> None:
        """Runs callbacks until none is left, as the loop that runs in this thread."""
        with _entered(self):
            while self._scheduled:
                callback, arguments = self._scheduled.pop(0)
                callback(*arguments)

    async def await_future(self, future: "asyncio.Future[None]") -> None:
        """Awaits one future."""
        await future

    @contextlib.contextmanager
    def suspended(self, *coroutines: Coroutine[Any, Any, Any]) -> Generator[list["asyncio.Task[Any]"]]:
        """Tasks of the coroutines, each run to its first wait; cancelled at the end."""
        tasks = [self.create_task(coroutine) for coroutine in coroutines]
        self.run_scheduled()
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()
            self.run_scheduled()
