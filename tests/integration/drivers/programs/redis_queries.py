"""redis.asyncio: a blocking pop, a pipeline with a slow command, and an answer that takes long to read."""

from __future__ import annotations

import sys
from typing import Any

import support
from opentelemetry.instrumentation.redis import RedisInstrumentor
from redis.asyncio import Redis

RedisInstrumentor().instrument()


def decode(response: Any, **options: Any) -> Any:
    support.burn()
    return response


async def main() -> None:
    redis = Redis(unix_socket_path=sys.argv[1])
    redis.set_response_callback("ECHO", decode)

    async def pop_order() -> None:
        await redis.blpop(["orders"], timeout=support.SLOW_SECONDS)  # pop_order

    async def store_orders() -> None:
        pipeline = redis.pipeline(transaction=False)
        pipeline.set("order", "1")
        pipeline.execute_command("DEBUG", "SLEEP", str(support.SLOW_SECONDS))
        await pipeline.execute()  # store_orders

    async def read_order() -> None:
        await redis.echo("order")

    await support.request(pop_order)
    await support.request(store_orders)
    await support.request(read_order)
    await redis.aclose()


if __name__ == "__main__":
    support.run(main)
