"""Greenlets, in which SQLAlchemy runs sync code for coroutines: how they lie in memory is found out, and checked."""

import logging
import sys
import types
from typing import Any

from . import _native

_logger = logging.getLogger(__name__)

_SPAWNING_MODULES = ("sqlalchemy.util.concurrency", "sqlalchemy.util._concurrency_py3k")
_SPAWN, _LOCAL = "greenlet_spawn", "context"

_held: list[object] = []  # whose addresses the sampler knows, for as long as the process runs


def learn() -> bool:
    """Lets the readers follow greenlets once SQLAlchemy and greenlet are imported; whether that is settled."""
    greenlet, spawn = sys.modules.get("greenlet"), _find_spawn()
    if greenlet is None or spawn is None or not hasattr(greenlet, "getcurrent"):  # or it is just being imported
        return False
    reason = _mismatch(greenlet, spawn.__code__)
    if not reason:
        _held.extend((greenlet.greenlet, spawn.__code__))
        _native.use_greenlets(greenlet.getcurrent)
        return True
    version = getattr(greenlet, "__version__", "?")
    _logger.warning(
        "otel_asyncprof does not see what SQLAlchemy runs in greenlets: greenlet %s %s; please report this line",
        version,
        reason,
    )
    return True


def _find_spawn() -> types.FunctionType | None:
    for name in _SPAWNING_MODULES:
        spawn = getattr(sys.modules.get(name), _SPAWN, None)
        if isinstance(spawn, types.FunctionType):
            return spawn
    return None


def _mismatch(greenlet: types.ModuleType, spawn_code: types.CodeType) -> str:
    """What does not match; empty when the readers agree with Python."""
    if _LOCAL not in spawn_code.co_varnames or _LOCAL in spawn_code.co_cellvars:
        return f"is kept by {_SPAWN}() in another variable than {_LOCAL}"
    try:
        return _probe(greenlet, spawn_code)
    except Exception as error:
        return f"could not be checked: {type(error).__name__}: {error}"


def _wait(back: Any) -> None:
    back.switch()


def _outer(back: Any) -> None:
    _wait(back)


def _probe(greenlet: types.ModuleType, spawn_code: types.CodeType) -> str:
    """Two greenlets of our own, one the other's parent, that are switched away from."""
    back = greenlet.getcurrent()
    parent = greenlet.greenlet(_wait)
    parent.switch(back)
    child = greenlet.greenlet(_outer, parent)
    child.switch(back)
    try:
        found = _native.learn_greenlets(
            greenlet=id(child),
            frame=id(child.gr_frame),
            code=id(_wait.__code__),
            parent=id(parent),
            greenlet_type=id(greenlet.greenlet),
            spawn_code=id(spawn_code),
            spawn_local=spawn_code.co_varnames.index(_LOCAL),
        )
        if not found:
            return "does not keep its frames as expected"
        read = [_native.read_greenlet(id(each)) for each in (child, parent, back)]
    finally:
        child.switch()  # it ends, then its parent, then we go on
    said = [[id(_wait.__code__), id(_outer.__code__)], [id(_wait.__code__)], []]
    return "" if read == said else f"has frames {read!r}, Python says {said!r}"
