"""The Cassandra driver: futures of its reactor thread, bridged into asyncio."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import support
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, ResponseFuture, Session
from cassandra.policies import WhiteListRoundRobinPolicy
from opentelemetry.instrumentation.cassandra import CassandraInstrumentor

CassandraInstrumentor().instrument()


def make_row(columns: Any, rows: Any) -> list[Any]:
    support.burn()
    return list(rows)


def bridge(response: ResponseFuture) -> asyncio.Future[Any]:
    """An asyncio future of the driver's own, which its reactor thread completes."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    response.add_callbacks(
        lambda rows: loop.call_soon_threadsafe(future.set_result, rows),
        lambda error: loop.call_soon_threadsafe(future.set_exception, error),
    )
    return future


async def main() -> None:
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy(["127.0.0.1"]), row_factory=make_row)
    cluster = Cluster(
        ["127.0.0.1"],
        port=int(sys.argv[1]),
        protocol_version=4,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
    )
    session: Session = await asyncio.to_thread(cluster.connect)

    async def find_orders() -> None:
        await bridge(session.execute_async("SELECT * FROM shop.orders"))

    await support.request(find_orders)
    await asyncio.to_thread(cluster.shutdown)


if __name__ == "__main__":
    support.run(main)
