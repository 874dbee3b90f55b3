"""A recursion of 200 calls that returns at once and generators that yield at once, as fast as they can."""

import time
from collections.abc import Iterator

from targets.support import phase


def fall(depth: int) -> None:
    if depth:
        fall(depth - 1)


def yielding(depth: int) -> Iterator[int]:
    if depth:
        yield from yielding(depth - 1)
    yield depth


def spin() -> None:
    for _ in yielding(60):
        pass


def storm() -> None:
    end = time.monotonic() + 1
    while time.monotonic() < end:
        fall(200)
        spin()


async def main() -> None:
    with phase():
        storm()
