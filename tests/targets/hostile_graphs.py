"""A long chain of tasks that await each other, tasks that await themselves, objects that answer nothing.

usage: hostile_graphs.py LENGTH
"""

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Generator
from typing import Any

from otel_asyncprof.testing import capture

LENGTH = int(sys.argv[1])
EXPECTED = {"below", "plain", "silent"}
HOSTILE: "dict[str, asyncio.Task[None]]" = {}


class Silent(type):
    """A class that cannot be asked anything."""

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("not comparable")

    def __hash__(cls) -> int:
        raise RuntimeError("not hashable")

    def __instancecheck__(cls, instance: object) -> bool:
        raise RuntimeError("no instances")


class Awaitable(metaclass=Silent):
    """Awaits itself, and lies about what it is."""

    def __init__(self, future: "asyncio.Future[None]") -> None:
        self.future = future

    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    def __await__(self) -> Generator[Any, None, None]:
        return self  # type: ignore[return-value]

    def __iter__(self) -> "Awaitable":
        return self

    def __next__(self) -> Any:
        self.future._asyncio_future_blocking = True
        return self.future

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


class SilentTask(asyncio.Task, metaclass=Silent):  # type: ignore[type-arg]
    """A task of such a class."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("get_name", "get_coro", "done", "cancel", "__class__"):
            return super().__getattribute__(name)
        raise RuntimeError("no attributes")

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


async def leaf(future: "asyncio.Future[None]") -> None:
    await future


async def link(inner: "asyncio.Task[None]") -> None:
    await inner


async def awaits(name: str, *others: str) -> None:
    await asyncio.sleep(0)
    await asyncio.gather(*(HOSTILE[other] for other in others))


async def shields(name: str) -> None:
    await asyncio.sleep(0)
    await asyncio.shield(HOSTILE[name])


async def collects(name: str, *others: str) -> None:
    await asyncio.sleep(0)
    await asyncio.wait({HOSTILE[other] for other in others})


async def silent(future: "asyncio.Future[None]") -> None:
    await Awaitable(future)


async def main() -> None:
    loop = asyncio.get_running_loop()
    never = loop.create_future()
    kept = [loop.create_task(leaf(never), name="leaf")]
    for number in range(LENGTH):
        kept.append(loop.create_task(link(kept[-1]), name=f"link {number}"))
    for name, coroutine in {
        "itself": awaits("itself", "itself", "below"),
        "shield": shields("shield"),
        "wait": collects("wait", "wait"),
        "first": awaits("first", "second"),
        "second": awaits("second", "third", "second"),
        "third": awaits("third", "first"),
        "below": leaf(never),
        "plain": silent(never),
    }.items():
        HOSTILE[name] = loop.create_task(coroutine, name=name)
    HOSTILE["silent"] = SilentTask(silent(never), loop=loop, name="silent")
    await asyncio.sleep(0.1)
    seen: dict[str, set[str]] = {}
    for _ in range(60):
        with capture(100) as profile:
            await asyncio.sleep(0.5)
        for sample in profile.samples:
            name = "link" if str(sample.task_name).startswith("link") else str(sample.task_name)
            if name in (*EXPECTED, "leaf", "link"):
                seen.setdefault(name, set()).add(" > ".join(sample.functions[1:]))
        if seen.keys() >= EXPECTED:
            break
    with capture(200, tasks_per_tick=1) as profile:
        await asyncio.sleep(0.5)
    visits = profile.stats.tasks_visited / profile.stats.ticks
    print(json.dumps({"seen": {name: sorted(stacks) for name, stacks in seen.items()}, "visits": visits}))
    sys.stdout.flush()
    os._exit(0)  # asyncio itself cannot cancel or show such tasks


async def guarded() -> None:
    try:
        await main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


asyncio.run(guarded())
