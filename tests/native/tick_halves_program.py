"""Tasks of which the next one begins to run between the halves of a tick; prints what each was seen to do.

usage: python tick_halves_program.py LIBRARY
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib.machinery
import importlib.util
import json
import sys

LIBRARY = sys.argv[1]
_loader = importlib.machinery.ExtensionFileLoader("otel_asyncprof._native", LIBRARY)
_spec = importlib.util.spec_from_loader("otel_asyncprof._native", _loader)
assert _spec is not None
sys.modules["otel_asyncprof._native"] = importlib.util.module_from_spec(_spec)

from otel_asyncprof import _anchors, _native, _runtime_context  # noqa: E402

_halves = ctypes.PyDLL(LIBRARY)
_halves.halves_seen.restype = ctypes.c_char_p
_halves.halves_moved.restype = ctypes.c_uint64


def seen(name: str) -> list[object]:
    """State and functions of the one sample that a task gave."""
    state = ctypes.c_uint32()
    stack = _halves.halves_seen(name.encode(), ctypes.byref(state))
    return [state.value, stack.decode().split() if stack else None]


async def first() -> None:
    """Runs when its thread is looked at, and has given way when tasks are."""
    _halves.halves_threads()
    await asyncio.sleep(0)


async def inner() -> None:
    """Runs when tasks are looked at."""
    _halves.halves_tasks()


async def second() -> None:
    await inner()


KEPT: list[asyncio.Task[None]] = []  # so that its name can be read


async def last() -> None:
    """Runs when its thread is looked at, and has ended when tasks are."""
    _halves.halves_threads()


async def awaits_last() -> None:
    """Has ended then, too."""
    KEPT.append(asyncio.create_task(last(), name="last"))
    await KEPT[0]


async def main() -> None:
    """The first two, one after the other, and the others in a tick of their own."""
    await asyncio.gather(asyncio.create_task(first(), name="first"), asyncio.create_task(second(), name="second"))
    await asyncio.create_task(awaits_last())
    _halves.halves_tasks()


_runtime_context.install()
_native.prepare(anchors=_anchors.collect())
features = _native.FEATURE_TASKS | _native.FEATURE_AWAITERS | _native.FEATURE_SPANS
assert _halves.halves_open(_anchors.asyncio_directory().encode(), features, _native.ATTRIBUTE_TASK_NAME)
asyncio.run(main())
print(json.dumps({name: seen(name) for name in ("first", "second", "last")} | {"moved": _halves.halves_moved()}))
