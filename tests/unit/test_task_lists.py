"""The lists in which asyncio keeps tasks, from CPython 3.14 on."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading

import pytest
from reader_helpers import event_loop, prepare, settle

from otel_asyncprof import _native

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="tasks stand in lists from 3.14 on")


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def listed(of: set[int]) -> list[int]:
    """Addresses of these tasks in the order of the lists."""
    return [address for address in map(id, _native.listed_tasks()) if address in of]


@pytest.mark.parametrize("count", [1, 255, 256, 257, 5000])
def test_every_task_is_listed_once_oldest_first(count: int) -> None:
    """Whatever room there was for them before."""
    prepare()
    with event_loop() as loop:
        tasks = [loop.create_task(forever()) for _ in range(count)]
        settle(loop)
        assert listed(set(map(id, tasks))) == list(map(id, tasks))
        for task in tasks[::2]:
            task.cancel()
        settle(loop)
        assert listed(set(map(id, tasks))) == list(map(id, tasks[1::2]))


def test_a_task_whose_thread_has_ended_is_listed() -> None:
    """It lingers in the interpreter's own list while somebody holds it."""
    prepare()
    made: list[asyncio.Task[None]] = []

    def run() -> None:
        loop = asyncio.new_event_loop()
        made.append(loop.create_task(forever()))
        settle(loop)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    gc.collect()
    assert listed({id(made[0])}) == [id(made[0])]
    assert id(made[0]) in _native.read_tasks()
    assert _native.read_task(id(made[0]))["waiting"] is True
    made.pop().get_loop().close()


def test_lists_of_several_threads_are_read() -> None:
    """Each loop's thread has one."""
    prepare()
    ready, go_on = threading.Barrier(3), threading.Event()
    made: list[asyncio.Task[None]] = []

    def run() -> None:
        with event_loop() as loop:
            made.append(loop.create_task(forever()))
            settle(loop)
            ready.wait(60)
            go_on.wait(60)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    ready.wait(60)
    try:
        assert set(listed(set(map(id, made)))) == set(map(id, made))
    finally:
        go_on.set()
        for thread in threads:
            thread.join(60)


def test_before_the_readers_are_prepared_no_task_is_listed() -> None:
    """Where tasks stand is known from then on."""
    code = "from otel_asyncprof import _native; assert _native.listed_tasks() == []"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
