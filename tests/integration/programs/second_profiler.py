"""An application that starts a profiler in code, under opentelemetry-instrument as well."""

import asyncio

from otel_asyncprof import Profiler


async def work() -> None:
    await asyncio.sleep(0.2)


with Profiler(exporter="console") as profiler:
    print(profiler.is_running)
    asyncio.run(work())
