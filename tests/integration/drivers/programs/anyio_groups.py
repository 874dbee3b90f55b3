"""anyio's task groups: children of a request, of a group in a group, and work in a thread."""

from __future__ import annotations

import anyio
import anyio.abc
import anyio.to_thread
import support
from opentelemetry.trace import SpanKind


async def find_orders() -> None:
    with support.tracer.start_as_current_span("SELECT", kind=SpanKind.CLIENT):  # find_orders
        await anyio.sleep(support.SLOW_SECONDS)


async def find_prices() -> None:
    with support.tracer.start_as_current_span("SELECT", kind=SpanKind.CLIENT):  # find_prices
        await anyio.sleep(support.SLOW_SECONDS)


async def in_group() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(find_orders)


async def in_nested_groups() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(collect_prices)


async def collect_prices() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(find_prices)
        group.start_soon(find_prices)


async def find_late(*, task_status: anyio.abc.TaskStatus[None]) -> None:
    task_status.started()
    with support.tracer.start_as_current_span("SELECT", kind=SpanKind.CLIENT):  # find_late
        await anyio.sleep(support.SLOW_SECONDS)


async def in_started() -> None:
    async with anyio.create_task_group() as group:
        await group.start(find_late)


async def in_group_without_span() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(wait_alone)


async def wait_alone() -> None:
    await anyio.sleep(support.SLOW_SECONDS)


async def in_thread() -> None:
    await anyio.to_thread.run_sync(support.burn)


async def main() -> None:
    async with anyio.create_task_group():  # now anyio imports what it needs for asyncio
        pass
    with support.tracer.start_as_current_span("warm up"):  # and now that is noticed
        pass
    for query in (in_group, in_nested_groups, in_started, in_thread):
        await support.request(query)
    await support.repeat(in_group_without_span)


if __name__ == "__main__":
    support.run(main)
