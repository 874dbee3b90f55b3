"""Who awaits a task: exactly those tasks, found in what the waiting side has left in memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
from reader_helpers import awaiters, forever, named, read_all, settle, standing, start, wait_on

from otel_asyncprof import _native

MAX_AWAITERS = 8
MAX_HOPS = 6
HOUR = 3600
needs_eager_tasks = pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")


async def direct() -> None:
    await start("child")


async def gather_of_tasks() -> None:
    await asyncio.gather(start("child"), start("other"))


async def gather_of_coroutines() -> None:
    await asyncio.gather(named("child"), named("other"))


async def gather_with_exceptions() -> None:
    await asyncio.gather(start("child"), asyncio.sleep(0), named("other"), return_exceptions=True)


async def gather_of_gathers() -> None:
    await asyncio.gather(asyncio.gather(named("child")), asyncio.gather(asyncio.gather(start("other"))))


async def gather_of_one_task_twice() -> None:
    task = start("child")
    await asyncio.gather(task, task, named("other"))


async def wait_for_all() -> None:
    await asyncio.wait([start("child"), start("other")])


async def wait_for_first_with_timeout() -> None:
    await asyncio.wait({start("child"), start("other")}, timeout=HOUR, return_when=asyncio.FIRST_COMPLETED)


async def as_completed() -> None:
    for next_one in asyncio.as_completed([start("child"), named("other")], timeout=HOUR):
        await next_one


async def shield_in_gather() -> None:
    await asyncio.gather(asyncio.shield(start("child")), asyncio.shield(named("other")))


async def group_in_body() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(named("child"))
        group.create_task(forever(), name="other")
        await forever()


async def group_at_its_end() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(named("child"))
        group.create_task(forever(), name="other")


BOTH_STAND_ON_MAIN = [
    gather_of_tasks,
    gather_of_coroutines,
    gather_with_exceptions,
    gather_of_gathers,
    gather_of_one_task_twice,
    wait_for_all,
    wait_for_first_with_timeout,
    as_completed,
    shield_in_gather,
    group_in_body,
    group_at_its_end,
]


@pytest.mark.parametrize("main", BOTH_STAND_ON_MAIN, ids=lambda main: main.__name__)
def test_two_children_of_one_construct_stand_on_the_task_that_uses_it(main: Callable[[], Any]) -> None:
    """And nobody awaits that one."""
    assert read_all(main()) == {"main": [], "child": ["main"], "other": ["main"]}


@needs_eager_tasks
@pytest.mark.parametrize("main", BOTH_STAND_ON_MAIN, ids=lambda main: main.__name__)
def test_eager_children_stand_on_the_task_that_uses_the_construct(main: Callable[[], Any]) -> None:
    """They took their first step inside it."""
    factory = asyncio.eager_task_factory  # type: ignore[attr-defined]
    assert read_all(main(), task_factory=factory) == {"main": [], "child": ["main"], "other": ["main"]}


async def shield_alone() -> None:
    await asyncio.shield(start("child"))


async def limited() -> None:
    async with asyncio.timeout(HOUR):
        await start("child")


async def wait_for_task() -> None:
    await asyncio.wait_for(start("child"), HOUR)


async def wait_for_without_limit() -> None:
    await asyncio.wait_for(start("child"), None)


async def shield_in_wait_for() -> None:
    await asyncio.wait_for(asyncio.shield(start("child")), HOUR)


async def many_constructs() -> None:
    await asyncio.gather(asyncio.shield(asyncio.gather(start("child"))))


async def user_awaitable() -> None:
    class Awaitable:
        def __await__(self) -> Any:
            return start("child").__await__()

    await Awaitable()


async def async_generator() -> None:
    async def numbers() -> Any:
        yield await start("child")

    async for _ in numbers():
        pass


async def watched_task() -> None:
    task = start("child")
    for _ in range(20):
        task.add_done_callback(print)
    await task


async def unwatched_task() -> None:
    task = start("child")
    task.add_done_callback(print)
    task.remove_done_callback(print)
    await task


ONE_STANDS_ON_MAIN = [
    direct,
    shield_alone,
    limited,
    wait_for_task,
    wait_for_without_limit,
    shield_in_wait_for,
    many_constructs,
    user_awaitable,
    async_generator,
    watched_task,
    unwatched_task,
]


@pytest.mark.parametrize("main", ONE_STANDS_ON_MAIN, ids=lambda main: main.__name__)
def test_an_awaited_task_stands_on_the_task_that_awaits_it(main: Callable[[], Any]) -> None:
    """However it is awaited, and whatever else watches it."""
    assert read_all(main()) == {"main": [], "child": ["main"]}


@pytest.mark.parametrize("main", [*BOTH_STAND_ON_MAIN, *ONE_STANDS_ON_MAIN], ids=lambda main: main.__name__)
def test_the_waiting_side_says_that_it_waits_for_tasks(main: Callable[[], Any]) -> None:
    """In every construct, but not while it works in a group's body; and what it waits for does not."""
    with standing(main()) as tasks:
        waits = {name: _native.read_task(id(task))["awaits_tasks"] for name, task in tasks.items()}
    assert waits == {name: name == "main" and main is not group_in_body for name in waits}


def test_wait_for_a_coroutine_is_a_task_in_3_11_only() -> None:
    """Where it is one, it stands on the caller."""

    async def main() -> None:
        await asyncio.wait_for(named("child" if sys.version_info < (3, 12) else "main"), HOUR)

    assert read_all(main()) == ({"main": [], "child": ["main"]} if sys.version_info < (3, 12) else {"main": []})


@pytest.mark.parametrize("count", [2, 3, MAX_AWAITERS])
def test_a_task_awaited_by_several_has_exactly_those_awaiters(count: int) -> None:
    """Each once."""
    names = [f"awaiter {number}" for number in range(count)]

    async def main() -> None:
        child = start("child")
        for name in names:
            start(name, wait_on(child))
        start("stranger", wait_on(start("other")))
        await forever()

    assert read_all(main()) == {
        **{name: [] for name in (*names, "main", "stranger")},
        "child": names,
        "other": ["stranger"],
    }


def test_of_more_awaiters_than_there_is_room_for_the_first_are_kept() -> None:
    """In the order in which they began to wait."""

    async def main() -> None:
        child = start("child")
        for number in range(MAX_AWAITERS + 3):
            start(f"awaiter {number}", wait_on(child))
        await forever()

    assert read_all(main())["child"] == [f"awaiter {number}" for number in range(MAX_AWAITERS)]


def test_a_task_in_two_gathers_stands_on_both() -> None:
    """One awaits it directly as well."""

    async def main() -> None:
        child = start("child")
        start("first", wait_on(asyncio.gather(child, named("other"))))
        start("second", wait_on(asyncio.gather(asyncio.shield(child))))
        start("third", wait_on(child))
        await forever()

    found = read_all(main())
    assert found["child"] == ["first", "second", "third"]
    assert found["other"] == ["first"]


def test_one_task_on_several_ways_is_one_awaiter() -> None:
    """It waits once, for whichever comes first."""

    async def main() -> None:
        child = start("child")
        await asyncio.wait([child, start("helper", wait_on(child)), asyncio.gather(child)])

    assert read_all(main()) == {"main": [], "child": ["helper", "main"], "helper": ["main"]}


@pytest.mark.parametrize("depth", [1, 2, MAX_HOPS - 1, MAX_HOPS, MAX_HOPS + 1])
def test_nested_gathers_are_followed_up_to_the_bound(depth: int) -> None:
    """So many futures in a row."""

    async def main() -> None:
        awaited: Any = start("child")
        for _ in range(depth):
            awaited = asyncio.gather(awaited)
        await awaited

    assert read_all(main())["child"] == (["main"] if depth <= MAX_HOPS else [])


def test_tasks_that_await_each_other_are_each_others_awaiters() -> None:
    """The reader only tells: whoever follows awaiters must know where to end."""

    async def main() -> None:
        # One of them through wait(), which does not pass a cancellation on: the pair can be ended.
        ping = start("ping", wait_on_pong())
        tasks.append(start("pong", wait_on(ping)))
        await asyncio.gather(start("child", wait_on(ping)))

    async def wait_on_pong() -> None:
        await asyncio.sleep(0)
        await asyncio.wait(tasks)

    tasks: list[asyncio.Task[Any]] = []
    assert read_all(main()) == {"main": [], "ping": ["child", "pong"], "pong": ["ping"], "child": ["main"]}


def test_an_awaiter_that_went_on_is_none_any_more() -> None:
    """What is read is what holds now."""

    async def main() -> None:
        child = start("child")
        start("patient", wait_on(child))
        start("hasty", wait_on(asyncio.shield(child)))
        await forever()

    with standing(main()) as tasks:
        assert awaiters(tasks, "child") == ["hasty", "patient"]
        tasks["hasty"].cancel()
        settle(tasks["hasty"].get_loop())
        assert awaiters(tasks, "child") == ["patient"]
