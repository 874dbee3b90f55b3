"""The program of connection_pool.py under a tracer that samples nothing."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from targets import connection_pool


async def main() -> None:
    trace.set_tracer_provider(TracerProvider(sampler=ALWAYS_OFF))
    await connection_pool.main()
