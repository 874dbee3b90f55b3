"""A known tree of waiting and working: the seconds of every leaf are in its name, in hundredths."""

import asyncio

from targets.support import spin


async def wait_60() -> None:
    await asyncio.sleep(0.6)


async def wait_120() -> None:
    await asyncio.sleep(1.2)


def work_40() -> None:
    spin(0.4)


def work_80() -> None:
    spin(0.8)


async def left() -> None:
    await wait_60()
    work_40()


async def right() -> None:
    await wait_120()
    work_80()


async def main() -> None:
    await left()
    await right()
    await asyncio.gather(asyncio.create_task(wait_60()), asyncio.create_task(wait_120()))
