"""The ways to await a task or to be suspended, in one program: some 90 tasks in a task set of several hundred slots."""

import asyncio
from types import ModuleType

from targets import (
    as_completed,
    async_generators,
    await_task,
    context_managers,
    gather,
    gather_nested,
    hand_off,
    shield,
    task_group,
    timeouts,
    two_awaiters,
    unawaited,
    wait,
    wait_for,
)
from targets.support import name_me

WAYS = [
    as_completed,
    async_generators,
    await_task,
    context_managers,
    gather,
    gather_nested,
    hand_off,
    shield,
    task_group,
    timeouts,
    two_awaiters,
    unawaited,
    wait,
    wait_for,
]
TASKS = 80


async def take(way: ModuleType) -> None:
    name_me(way.__name__)
    await way.main()


async def main() -> None:
    await asyncio.gather(*(take(way) for way in WAYS))
