"""psycopg (async): one query sleeps in the server, another one has a parameter that takes long to dump."""

from __future__ import annotations

import sys

import psycopg
import support
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from psycopg.adapt import Dumper

PsycopgInstrumentor().instrument()


class Order:
    """What the program stores."""


class OrderDumper(Dumper):
    """Takes long."""

    def dump(self, obj: Order) -> bytes:
        support.burn()
        return b"order"


async def main() -> None:
    connection = await psycopg.AsyncConnection.connect(host=sys.argv[1], user="postgres", autocommit=True)
    connection.adapters.register_dumper(Order, OrderDumper)

    async def find_orders() -> None:
        await connection.execute("SELECT pg_sleep(%s)", (support.SLOW_SECONDS,))  # find_orders

    async def find_with_cursor() -> None:
        async with connection.cursor() as cursor:
            await cursor.execute("SELECT pg_sleep(%s)", (support.SLOW_SECONDS * 1.5,))  # find_with_cursor

    async def store_order() -> None:
        await connection.execute("SELECT %s", (Order(),))

    await support.request(find_orders)
    await support.request(find_with_cursor)
    await support.request(store_order)
    await connection.close()


if __name__ == "__main__":
    support.run(main)
