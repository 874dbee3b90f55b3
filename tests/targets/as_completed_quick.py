"""as_completed() over ten coroutines that end in an order other than the one they are given in."""

import asyncio

from targets.support import REPORT

ORDER = [7, 2, 9, 4, 0, 5, 8, 1, 6, 3]


async def answer(number: int) -> int:
    await asyncio.sleep(0.03 * number)
    return number


async def main() -> None:
    REPORT["order"] = [await next_one for next_one in asyncio.as_completed([answer(number) for number in ORDER])]
