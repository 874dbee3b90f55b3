"""An application without a word about profiling. Run it as

    OTEL_PROFILES_EXPORTER=console OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none \\
        opentelemetry-instrument python zero_code.py
"""

import asyncio


async def worker(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def main() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(worker(0.2))
        group.create_task(worker(0.4))


asyncio.run(main())
