"""What asyncio itself notes of who awaits whom, from CPython 3.14 on."""

from __future__ import annotations

import asyncio
import sys
from asyncio import staggered
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from reader_helpers import event_loop, prepare, settle, standing

from otel_asyncprof import _native

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="futures note their awaiters from 3.14 on")
MAX_AWAITERS = 8


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def start(name: str) -> asyncio.Task[None]:
    return asyncio.create_task(forever(), name=name)


async def direct() -> None:
    await start("child")


async def gather() -> None:
    await asyncio.gather(start("child"), start("other"))


async def gather_in_gather() -> None:
    await asyncio.gather(asyncio.gather(start("child")), start("other"))


async def wait() -> None:
    await asyncio.wait({start("child"), start("other")})


async def shield() -> None:
    await asyncio.shield(start("child"))


async def wait_for() -> None:
    await asyncio.wait_for(start("child"), 3600)


async def group() -> None:
    async with asyncio.TaskGroup() as members:
        members.create_task(forever(), name="child")


async def race() -> None:
    await staggered.staggered_race([forever, forever], 3600)


CONSTRUCTS = [direct, gather, gather_in_gather, wait, shield, wait_for, group, race]


@pytest.mark.parametrize("main", CONSTRUCTS, ids=lambda main: main.__name__)
def test_awaiters_agree_with_the_call_graph(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """For every task of a construct, and there is one that somebody awaits."""
    with standing(main()):
        tasks = _native.listed_tasks()
        read = {id(task): set(_native.read_task(id(task))["awaiters"]) for task in tasks}
        graphs = {id(task): asyncio.capture_call_graph(task) for task in tasks}  # type: ignore[attr-defined]
        said = {address: {id(parent.future) for parent in graph.awaited_by} for address, graph in graphs.items()}
    assert read == said
    assert any(said.values())


@pytest.mark.parametrize("count", [1, 2, MAX_AWAITERS, MAX_AWAITERS + 1, 300])
def test_awaiters_noted_by_another_library_are_read(count: int) -> None:
    """One stands there itself, several in a set; no more than there is room for."""
    prepare()
    with event_loop() as loop:
        child, *parents = (loop.create_task(forever()) for _ in range(1 + count))
        settle(loop)
        for parent in parents:
            asyncio.future_add_to_awaited_by(child, parent)  # type: ignore[attr-defined]
        read = _native.read_task(id(child))["awaiters"]
        assert len(read) == len(set(read)) == min(count, MAX_AWAITERS)
        assert set(read) <= {id(parent) for parent in parents}
        for parent in parents:
            asyncio.future_discard_from_awaited_by(child, parent)  # type: ignore[attr-defined]
        assert _native.read_task(id(child))["awaiters"] == []


def test_a_future_between_two_tasks_leads_to_those_that_await_it() -> None:
    """Another library's construct has a future of its own."""
    prepare()
    with event_loop() as loop:
        child, parent = loop.create_task(forever()), loop.create_task(forever())
        between = loop.create_future()
        settle(loop)
        asyncio.future_add_to_awaited_by(child, between)  # type: ignore[attr-defined]
        assert _native.read_task(id(child))["awaiters"] == []
        asyncio.future_add_to_awaited_by(between, parent)  # type: ignore[attr-defined]
        assert _native.read_task(id(child))["awaiters"] == [id(parent)]
        asyncio.future_add_to_awaited_by(between, child)  # type: ignore[attr-defined]
        assert set(_native.read_task(id(child))["awaiters"]) == {id(parent), id(child)}


def test_who_has_called_gather_but_awaits_something_else_is_no_awaiter() -> None:
    """asyncio's note says otherwise: it names who called, for as long as the children run."""

    async def main() -> None:
        future = asyncio.gather(start("child"))
        await forever()
        await future

    with standing(main()) as tasks:
        assert len(tasks["child"]._asyncio_awaited_by) == 1  # type: ignore[attr-defined]
        assert _native.read_task(id(tasks["child"]))["awaiters"] == []
