"""Tasks that nobody awaits have no awaiter, whatever callbacks they carry and whatever others wait for."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from reader_helpers import event_loop, forever, named, prepare, read_all, settle, standing, start, wait_on

from otel_asyncprof import _anchors, _native


async def hand_over_by_queue() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    start("child")
    await queue.get()


async def hand_over_by_event() -> None:
    start("child")
    await asyncio.Event().wait()


async def hand_over_by_lock() -> None:
    lock = asyncio.Lock()
    await lock.acquire()
    start("child", wait_on(lock.acquire()))
    await lock.acquire()


async def hand_over_by_future() -> None:
    future = asyncio.get_running_loop().create_future()
    start("child", wait_on(future))
    await future


async def user_function() -> None:
    start("child").add_done_callback(lambda _: None)
    await forever()


async def user_closure_over_tasks() -> None:
    main_task, others = asyncio.current_task(), [start("other")]
    start("child").add_done_callback(lambda _: print(main_task, others))
    await forever()


async def user_closure_over_a_future_of_nobody() -> None:
    future = asyncio.get_running_loop().create_future()
    start("child").add_done_callback(lambda _: future.set_result(None))
    await forever()


async def user_partial_over_a_task() -> None:
    start("child").add_done_callback(functools.partial(print, asyncio.current_task()))
    await forever()


class Watcher:
    """A user's object with tasks at hand."""

    def __init__(self) -> None:
        self.task, self.parent = asyncio.current_task(), asyncio.current_task()

    def done(self, _: object) -> None:
        """Called at the end of a task."""

    def __call__(self, _: object) -> None:
        """The same."""


async def user_method() -> None:
    start("child").add_done_callback(Watcher().done)
    await forever()


async def user_callable() -> None:
    start("child").add_done_callback(Watcher())
    await forever()


async def user_set_of_tasks() -> None:
    tasks = {start("child")}
    for task in tasks:
        task.add_done_callback(tasks.discard)
    await forever()


async def abandoned_gather() -> None:
    kept.append(asyncio.gather(start("child"), return_exceptions=True))
    await forever()


async def abandoned_shield() -> None:
    kept.append(asyncio.shield(start("child")))
    await forever()


kept: list[Any] = []


NOBODY_AWAITS = [
    hand_over_by_queue,
    hand_over_by_event,
    hand_over_by_lock,
    hand_over_by_future,
    user_function,
    user_closure_over_tasks,
    user_closure_over_a_future_of_nobody,
    user_partial_over_a_task,
    user_method,
    user_callable,
    user_set_of_tasks,
    abandoned_gather,
    abandoned_shield,
]


@pytest.mark.parametrize("main", NOBODY_AWAITS, ids=lambda main: main.__name__)
def test_a_task_beside_others_is_not_seen_to_wait_for_them(main: Callable[[], Any]) -> None:
    """None of them waits for a task."""
    with standing(main()) as tasks:
        waits = {name: _native.read_task(id(task))["awaits_tasks"] for name, task in tasks.items()}
    assert waits == dict.fromkeys(waits, False)


@pytest.mark.parametrize("main", NOBODY_AWAITS, ids=lambda main: main.__name__)
def test_a_task_that_nobody_awaits_has_no_awaiter(main: Callable[[], Any]) -> None:
    """A callback that somebody added, or a primitive between two tasks, makes none."""
    found = read_all(main())
    assert set(map(tuple, found.values())) == {()}
    assert {"main", "child"} <= found.keys()


def test_what_an_applications_callbacks_hold_says_nothing_of_who_waits() -> None:
    """A future or a queue in a closure, a future among the arguments of a partial: another task awaits each."""

    async def wait_for_item(queue: asyncio.Queue[object]) -> None:
        await queue.get()

    async def wait_for_future(future: asyncio.Future[None]) -> None:
        await future

    async def main() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue: asyncio.Queue[object] = asyncio.Queue()
        consumer = asyncio.create_task(wait_for_item(queue), name="consumer")
        waiter = asyncio.create_task(wait_for_future(future), name="waiter")
        child = start("child")
        child.add_done_callback(lambda task: print(future.done()))
        child.add_done_callback(lambda task: queue.put_nowait(task))
        child.add_done_callback(functools.partial(lambda kept, task: None, future))
        await asyncio.Event().wait()
        del consumer, waiter

    assert read_all(main()) == {"main": [], "consumer": [], "waiter": [], "child": []}


def test_a_task_awaited_from_another_thread_has_no_awaiter() -> None:
    """A concurrent future waits outside of every loop."""
    prepare()
    with event_loop() as loop:
        waiting = asyncio.run_coroutine_threadsafe(named("child"), loop)
        settle(loop)
        (task,) = asyncio.all_tasks(loop)
        assert _native.read_task(id(task))["awaiters"] == []
        assert not waiting.done()


def test_a_callback_that_holds_a_task_leads_nowhere() -> None:
    """Those who await the held task do not await the watched one."""

    async def main() -> None:
        other = start("other")
        start("child").add_done_callback(lambda _: print(other))
        start("third").add_done_callback(functools.partial(print, other))
        await other

    assert read_all(main()) == {"main": [], "child": [], "third": [], "other": ["main"]}


def shield_of_later_releases(inner: asyncio.Future[Any]) -> asyncio.Future[Any]:
    """In later releases of 3.14 the callback of the outer future also holds the task that has called shield."""
    outer, cur_task = asyncio.get_running_loop().create_future(), asyncio.current_task()

    def _outer_done_callback(_: asyncio.Future[Any]) -> object:
        return inner, cur_task

    outer.add_done_callback(_outer_done_callback)
    return outer


async def wait_behind_a_shield(inner: asyncio.Future[Any]) -> None:
    await shield_of_later_releases(inner)


async def shield_a_future_and_a_task() -> None:
    start("of a future", wait_behind_a_shield(asyncio.get_running_loop().create_future()))
    start("of a task", wait_behind_a_shield(start("shielded")))


def test_a_shield_of_a_plain_future_waits_for_no_task() -> None:
    """Whatever task its callback holds beside the future."""
    code = _anchors._inner_code(shield_of_later_releases, "_outer_done_callback")
    with standing(shield_a_future_and_a_task()) as tasks:
        _native.prepare(anchors=_anchors.collect() | {"code_shield": id(code)})
        waits = {name: _native.read_task(id(task))["awaits_tasks"] for name, task in tasks.items()}
    prepare()
    assert waits == {"of a future": False, "of a task": True, "shielded": False}
