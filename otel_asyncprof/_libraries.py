"""Libraries whose stacks need more than asyncio's own: the readers are told once the application has imported them."""

import contextlib
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

from . import _greenlets, _native

_logger = logging.getLogger(__name__)

_held: list[object] = []  # whose addresses the readers know, for as long as the process runs
_modules_seen = 0


def learn(thoroughly: bool = False) -> None:
    """Looks for those not known yet, when anything has been imported since. Imports nothing itself."""
    global _modules_seen
    if not _waiting or (len(sys.modules) == _modules_seen and not thoroughly):
        return
    _modules_seen = len(sys.modules)
    for library in tuple(_waiting):
        if library():
            with contextlib.suppress(ValueError):  # another thread was quicker
                _waiting.remove(library)


def _learn_anyio() -> bool:
    """Whether it is settled if anyio's task groups are followed."""
    backend = sys.modules.get("anyio._backends._asyncio")
    if backend is None or not hasattr(backend, "backend_class"):  # or it is just being imported
        return False
    try:
        _use_anyio(backend)
    except Exception:  # another version has other names: its children then stand on the tasks of their spans
        _logger.debug("anyio's task groups are not followed", exc_info=True)
    return True


def _use_anyio(backend: Any) -> None:
    group, scope = backend.TaskGroup, backend.CancelScope
    callback = next(
        constant
        for constant in group._spawn.__code__.co_consts
        if isinstance(constant, types.CodeType) and constant.co_name == "task_done"
    )
    cells = callback.co_freevars
    end, start = group.__aexit__.__code__, group.start.__code__
    names = [sys.intern(name) for name in ("cancel_scope", "_host_task", "_on_completed_fut")]
    _held.extend((callback, end, start, names))
    _native.use_anyio_groups(
        callback_code=id(callback),
        end_code=id(end),
        start_code=id(start),
        name_scope=id(names[0]),
        name_host=id(names[1]),
        name_completed=id(names[2]),
        group_cell=cells.index("self"),
        start_cell=cells.index("task_status_future"),
        host_offset=_slot(scope(), names[1]),
    )


def _slot(instance: Any, name: str) -> int:
    """Where an object keeps an attribute that is a slot; 0 for one that is none."""
    if name in getattr(instance, "__dict__", ()):
        return 0
    marker = object()
    setattr(instance, name, marker)
    offset = _native.find_slot(id(instance), id(marker), type(instance).__basicsize__)
    setattr(instance, name, None)
    if not offset:
        raise LookupError(name)
    return offset


_waiting: list[Callable[[], bool]] = [_learn_anyio, _greenlets.learn]
