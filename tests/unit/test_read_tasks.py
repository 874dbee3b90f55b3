"""The set of live tasks: all of them, each once, whoever made them."""

from __future__ import annotations

import asyncio
import asyncio.tasks
import contextvars
import gc
import sys
from collections.abc import Coroutine
from typing import Any

import pytest
from reader_helpers import event_loop, prepare, settle

from otel_asyncprof import _native

needs_eager_tasks = pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def read_new(before: set[int]) -> set[int]:
    """The tasks that are read now and were not before; no address is given twice."""
    read = _native.read_tasks()
    assert len(read) == len(set(read))
    return set(read) - before


@pytest.fixture
def before() -> set[int]:
    """What is there already: other tests may have left something."""
    prepare()
    gc.collect()
    return set(_native.read_tasks())


@pytest.mark.parametrize("count", [0, 1, 7, 1000, 30_000])
def test_every_task_is_found(before: set[int], count: int) -> None:
    """Also after the table has grown many times, and while other tasks end."""
    with event_loop() as loop:
        tasks = [loop.create_task(forever(), name="t") for _ in range(count)]
        assert read_new(before) == set(map(id, tasks))
        settle(loop)
        for task in tasks[::2]:
            task.cancel()
        settle(loop)
        assert read_new(before) == set(map(id, tasks[1::2]))
    assert read_new(before) == set()


def test_tasks_of_all_loops_are_found(before: set[int]) -> None:
    """Also of loops that do not run."""
    with event_loop() as first, event_loop() as second:
        tasks = [loop.create_task(forever()) for loop in (first, second, first)]
        assert read_new(before) == set(map(id, tasks))


def test_ended_tasks_are_left_out_while_they_are_kept(before: set[int]) -> None:
    """With a result, an exception or a cancellation."""

    async def fail() -> None:
        raise ValueError

    with event_loop() as loop:
        tasks = [loop.create_task(coroutine) for coroutine in (asyncio.sleep(0), fail(), forever())]
        settle(loop)
        tasks[2].cancel()
        settle(loop)
        assert all(task.done() for task in tasks)
        assert isinstance(tasks[1].exception(), ValueError)
        assert read_new(before) == set()


class OwnTask(asyncio.Task):  # type: ignore[type-arg]
    """A subclass with fields of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.extra = "extra"


class OwnerTask(OwnTask):
    """A subclass of a subclass."""


@pytest.mark.parametrize("kind", [OwnTask, OwnerTask])
def test_subclasses_made_by_a_task_factory_are_tasks_like_any_other(before: set[int], kind: type[OwnTask]) -> None:
    """With name, frames, context and awaiters."""

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any) -> OwnTask:
        return kind(coroutine, loop=loop, **options)

    async def main() -> None:
        await asyncio.create_task(forever(), name="child")

    with event_loop(task_factory=factory) as loop:
        main_task = loop.create_task(main(), name="main")
        settle(loop)
        (child,) = asyncio.all_tasks(loop) - {main_task}
        assert type(main_task) is type(child) is kind
        assert read_new(before) == {id(main_task), id(child)}
        read = _native.read_task(id(child))
        assert (read["name"], read["awaiters"]) == ("child", [id(main_task)])
        assert [name for name, _, _ in read["frames"]] == ["forever"]


def make_python_task(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any) -> Any:
    """A task without a C structure."""
    return asyncio.tasks._PyTask(coroutine, loop=loop, **options)  # type: ignore[attr-defined]


def test_tasks_written_in_python_are_counted_as_foreign(before: set[int]) -> None:
    """They are no garbage and no crash: they are not seen, and the drop count says so."""
    with event_loop() as loop:
        python_tasks = [make_python_task(loop, forever()) for _ in range(3)]
        c_task = loop.create_task(forever())
        settle(loop)
        dropped = _native.stats()["drops"]["foreign_task"]
        assert read_new(before) == {id(c_task)}
        assert _native.stats()["drops"]["foreign_task"] == dropped + 3
        assert not any(task.done() for task in python_tasks)


def test_a_task_awaited_by_a_task_written_in_python_has_no_awaiter(before: set[int]) -> None:
    """The awaiting one could not be shown."""

    async def main(child: asyncio.Task[None]) -> None:
        await child

    with event_loop() as loop:
        child = loop.create_task(forever())
        parent = make_python_task(loop, main(child))
        settle(loop)
        assert child in asyncio.all_tasks(loop)
        assert _native.read_task(id(child))["awaiters"] == []
        assert not parent.done()


@needs_eager_tasks
def test_an_eager_task_is_found_in_its_first_step_and_after_it(before: set[int]) -> None:
    """It stands in a set of its own until it waits."""
    found: list[tuple[int, set[int]]] = []

    async def child() -> None:
        found.append((id(asyncio.current_task()), read_new(before)))
        await forever()

    async def main() -> None:
        kept = asyncio.create_task(child())
        await forever()
        assert not kept.done()

    with event_loop(task_factory=asyncio.eager_task_factory) as loop:  # type: ignore[attr-defined]
        main_task = loop.create_task(main())
        settle(loop)
        ((address, during),) = found
        assert during >= {address, id(main_task)}
        assert read_new(before) == {address, id(main_task)}


def test_an_object_that_is_no_task_is_refused_or_read_as_nothing() -> None:
    """An address that nothing can be read from is an error, not a crash."""
    prepare()
    for address in (0, 1, 4096, 1 << 47, (1 << 64) - 8):
        with pytest.raises(ValueError, match="there is no task at this address"):
            _native.read_task(address)
    for address in (-1, 1 << 64):
        with pytest.raises(OverflowError):
            _native.read_task(address)
    with pytest.raises(TypeError):
        _native.read_task("1")  # type: ignore[arg-type]


def test_the_context_of_a_task_is_its_own() -> None:
    """A copy of its parent's, or the one that it was given."""
    prepare()
    given = contextvars.Context()
    with event_loop() as loop:
        task = loop.create_task(forever(), context=given)
        other = loop.create_task(forever())
        settle(loop)
        assert _native.read_task(id(task))["context"] == id(given)
        assert _native.read_task(id(other))["context"] not in (0, id(given))
        if sys.version_info >= (3, 12):
            assert _native.read_task(id(other))["context"] == id(other.get_context())
