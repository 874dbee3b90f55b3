"""Every way to await a task or to be suspended, all in one program: some 90 tasks in a task set of several hundred slots."""

import asyncio

from targets import (
    as_completed,
    async_generators,
    await_task,
    awaitables,
    context_managers,
    cycle,
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

WAYS = [
    as_completed,
    async_generators,
    await_task,
    awaitables,
    context_managers,
    cycle,
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


async def main() -> None:
    await asyncio.gather(*(way.main() for way in WAYS))
