"""300 tasks at a time that live 5 to 50 ms and are made anew, among 4,000 that wait all the time."""

import asyncio
import random

from targets.population import Population
from targets.support import REPORT, phase

LINES = 300
WAITING = 4_000
SECONDS = 2.5

POPULATION = Population()
BRIEF: "dict[int, asyncio.Task[None]]" = {}


async def brief(number: int, end: float) -> None:
    await asyncio.sleep(random.uniform(0.005, 0.05))
    POPULATION.leave()
    begin_brief(number, end)


def begin_brief(number: int, end: float) -> None:
    if asyncio.get_running_loop().time() < end:
        POPULATION.enter()
        BRIEF[number] = asyncio.create_task(brief(number, end))


async def rest() -> None:
    await asyncio.sleep(60)


async def main() -> None:
    rests = [asyncio.create_task(rest()) for _ in range(WAITING)]
    end = asyncio.get_running_loop().time() + SECONDS + 0.5
    for number in range(LINES):
        begin_brief(number, end)
    await asyncio.sleep(0.2)
    with phase():
        begun = POPULATION.seconds()
        await asyncio.sleep(SECONDS)
        REPORT["lived"] = POPULATION.seconds() - begun
    for one in rests:
        one.cancel()
    await asyncio.sleep(0.6)
