"""Ever more tasks wait, up to 8,000, and then only 200 whose table stays as large; the program keeps account."""

import asyncio

from targets.population import Population
from targets.support import REPORT, phase

STEPS = [200, 2_000, 8_000, 200]
SECONDS = 0.5

POPULATION = Population()


async def rest() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        POPULATION.leave()


def resize(rests: "list[asyncio.Task[None]]", count: int) -> None:
    while len(rests) < count:
        POPULATION.enter()
        rests.append(asyncio.create_task(rest()))
    while len(rests) > count:
        rests.pop().cancel()


async def main() -> None:
    rests: list[asyncio.Task[None]] = []
    for step in STEPS:  # each step in a profile of its own
        resize(rests, step)
        await asyncio.sleep(0.3)
        with phase():
            begun = POPULATION.seconds()
            await asyncio.sleep(SECONDS)
            REPORT.setdefault("steps", []).append(POPULATION.seconds() - begun)
    with phase():  # and all of them in one
        begun = POPULATION.seconds()
        for step in STEPS:
            resize(rests, step)
            await asyncio.sleep(SECONDS)
        REPORT["whole"] = POPULATION.seconds() - begun
    resize(rests, 0)
    await asyncio.sleep(0)
