"""Line tables that together are larger than what is kept of them."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine
from typing import Any

from otel_asyncprof import _native
from otel_asyncprof.testing import CapturedProfile, capture

ALL_BYTES = 16 << 20  # ARENA_BYTES of code_table.c
LARGEST = 1 << 20  # MAX_LINE_TABLE_BYTES there
SIZES = [LARGEST] * (ALL_BYTES // LARGEST + 4) + [LARGEST // 2] * 20 + [LARGEST + 1]
TICKS = 20
FIRST_LINE = 1000
SOURCE = "async def waits_{0}(first, second):{1} await first.wait()\n await second.wait()"


def with_line_table(number: int, size: int) -> Callable[[asyncio.Event, asyncio.Event], Coroutine[Any, Any, None]]:
    """A function that waits so many lines and one below its first, then on the next; its line table has that size."""
    namespace: dict[str, Any] = {}
    exec(SOURCE.format(number, "\n" * (number + 1)), namespace)
    code = namespace[f"waits_{number}"].__code__
    table = code.co_linetable.ljust(size, b"\xf8")  # entries without a line, beyond all instructions
    return types.FunctionType(code.replace(co_firstlineno=FIRST_LINE * (number + 1), co_linetable=table), {})


def test_lines_and_names_are_right_though_their_tables_are_read_anew_again_and_again() -> None:
    """More than fit in, of two sizes; one that is too large alone has its name and line 0."""

    async def main() -> CapturedProfile:
        events = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.create_task(with_line_table(*each)(*events)) for each in enumerate(SIZES)]
        await asyncio.sleep(0)  # all have come to where they wait
        with capture(rate=100, cpu_budget=1.0) as profile:
            for number, event in enumerate(events, 1):
                while _native.stats()["ticks"] < TICKS * number:
                    await asyncio.sleep(0.01)
                event.set()
        await asyncio.gather(*tasks)
        return profile

    profile = asyncio.run(main())
    seen = {
        (frame.function, frame.line - frame.first_line)
        for sample in profile.samples
        for frame in sample.frames
        if frame.function.startswith("waits_")
    }
    expected = {
        (f"waits_{number}", number + wait if size <= LARGEST else -FIRST_LINE * (number + 1))
        for number, size in enumerate(SIZES)
        for wait in (1, 2)
    }
    assert seen == expected
    assert "<unreadable>" not in {frame.function for sample in profile.samples for frame in sample.frames}
