"""asyncpg: one query sleeps in the server, another one has a parameter that takes long to encode."""

from __future__ import annotations

import sys
from typing import Any

import asyncpg
import support
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor

AsyncPGInstrumentor().instrument()


def encode(value: Any) -> str:
    support.burn()
    return str(value)


async def main() -> None:
    connection = await asyncpg.connect(host=sys.argv[1], user="postgres", database="postgres")
    await connection.set_type_codec("xml", schema="pg_catalog", encoder=encode, decoder=str)

    async def find_orders() -> None:
        await connection.fetch("SELECT pg_sleep($1)", support.SLOW_SECONDS)  # find_orders

    async def stream_orders() -> None:
        async with connection.transaction():
            async for _ in connection.cursor("SELECT pg_sleep($1)", support.SLOW_SECONDS):  # stream_orders
                pass

    async def store_order() -> None:
        await connection.execute("SELECT $1::xml", "<order/>")

    await support.request(find_orders)
    await support.request(stream_orders)
    await support.request(store_order)
    await connection.close()


if __name__ == "__main__":
    support.run(main)
