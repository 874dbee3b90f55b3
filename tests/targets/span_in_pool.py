"""A pool of one thread: a job by to_thread, one by run_in_executor, another by to_thread, and idleness between."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from targets.support import burn, expect_span, phase, tracer


def first_job() -> None:
    burn(0.15)


def second_job() -> None:
    burn(0.15)


def third_job() -> None:
    burn(0.15)


async def main() -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="pool"))
    with phase():
        with tracer().start_as_current_span("first"):
            expect_span("first_job")
            await asyncio.to_thread(first_job)
        await asyncio.sleep(0.1)
        with tracer().start_as_current_span("second"):
            await loop.run_in_executor(None, second_job)
        with tracer().start_as_current_span("third"):
            expect_span("third_job")
            await asyncio.to_thread(third_job)
        await asyncio.sleep(0.1)
