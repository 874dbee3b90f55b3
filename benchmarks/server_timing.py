"""What ServerTimingMiddleware costs: requests per CPU second of the process, with it and without, in turns."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import Profiler
from otel_asyncprof._config import ProfilerConfig
from otel_asyncprof.asgi import ServerTimingMiddleware
from otel_asyncprof.export._base import ProfileExporter, ProfileExportResult

PROVIDER = TracerProvider(shutdown_on_exit=False)
TRACER = PROVIDER.get_tracer("benchmark")
AT_ONCE = 8


class Nowhere(ProfileExporter):
    """Takes everything."""

    def export(self, requests: object) -> ProfileExportResult:
        return ProfileExportResult.SUCCESS


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Waits as for one query, and works a little."""
    await asyncio.sleep(0.005)
    sum(range(20_000))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def requests_per_cpu_second(app: Any, seconds: float) -> float:
    """What one turn reaches, the profiler's own threads included."""

    async def send(message: object) -> None:
        pass

    async def client() -> int:
        n_requests = 0
        while time.monotonic() < end:
            with TRACER.start_as_current_span("GET /"):
                await app({"type": "http"}, None, send)
            n_requests += 1
        return n_requests

    end = time.monotonic() + seconds
    begun = time.process_time()
    numbers = await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    return sum(numbers) / (time.process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    chosen = parser.parse_args()
    ratios, costs = [], []
    with Profiler(ProfilerConfig(timeline=True), exporter=Nowhere(), tracer_provider=PROVIDER):
        for _ in range(chosen.pairs):
            plain = asyncio.run(requests_per_cpu_second(application, chosen.seconds))
            timed = asyncio.run(requests_per_cpu_second(ServerTimingMiddleware(application), chosen.seconds))
            ratios.append(timed / plain)
            costs.append(1000 * (1 / timed - 1 / plain))
            print(f"{plain:8,.0f} requests per CPU second without, {timed:8,.0f} with: {ratios[-1]:.2f}", flush=True)
    print(f"median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}),", end=" ")
    print(f"{statistics.median(costs):.2f} ms of CPU more for each response")


if __name__ == "__main__":
    main()
