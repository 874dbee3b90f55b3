"""Holds the code under test to what it may wait for. Run it with pytest."""

import asyncio

from otel_asyncprof.testing import capture


async def lookup(cache: dict[str, str]) -> str:
    if "key" not in cache:
        await asyncio.sleep(0.2)  # the slow path
        cache["key"] = "value"
    return cache["key"]


def time_asleep(cache: dict[str, str]) -> float:
    """The seconds for which the lookup was asleep."""
    with capture() as profile:
        asyncio.run(lookup(cache))
    return sum(sample.wall_ns for sample in profile.samples if sample.functions[-2:] == ("lookup", "sleep")) / 1e9


def test_a_cold_lookup_waits() -> None:
    assert 0.15 < time_asleep({}) < 1.0


def test_a_warm_lookup_does_not_wait() -> None:
    assert time_asleep({"key": "value"}) == 0
