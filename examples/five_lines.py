"""Profiles a program from its own code and prints the heaviest stacks."""

import asyncio

from otel_asyncprof import Profiler
from otel_asyncprof.export.console import ConsoleProfileExporter


async def fetch(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def main() -> None:
    await asyncio.gather(fetch(0.2), fetch(0.4))


with Profiler(exporter=ConsoleProfileExporter()):
    asyncio.run(main())
