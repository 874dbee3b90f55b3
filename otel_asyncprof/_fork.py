"""Forks: who is told of them in the child, and how the last profile leaves a child that multiprocessing ends."""

import concurrent.futures.thread  # noqa: F401
import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_END_PRIORITY = -100  # last: after multiprocessing's queues, and after the processes that the child itself has begun

_in_child: "Callable[[], object] | None" = None
_ended_by_multiprocessing: "Callable[[], object] | None" = None
_finalizer_pid = 0


def register(in_child: Callable[[], object]) -> None:
    """Has in_child called in each child of a fork; only the first call counts, since it cannot be taken back.

    Handlers are called in the order of their registration, so a thread that in_child starts finds locks still held that
    are freed by later ones. What it needs, the executors that read the resource, is registered by the import above.
    """
    global _in_child
    if _in_child is None:
        _in_child = in_child
        os.register_at_fork(after_in_child=in_child)


def lock_in_child(lock: "threading.RLock") -> "threading.RLock":
    """The lock itself when it is free or owned by the thread that has forked; a new one when its owner is not here."""
    if not lock.acquire(blocking=False):
        return threading.RLock()
    lock.release()
    return lock


def unless_at_the_end(lock: "threading.RLock") -> "AbstractContextManager[Any]":
    """The lock, but not when the interpreter is finalizing: who holds it may stand still for good."""
    return nullcontext() if sys.is_finalizing() else lock


def end_with_multiprocessing(end: Callable[[], object], *, forked_just_now: bool = False) -> None:
    """Has end called also when this is a process of multiprocessing: before 3.13 a forked one runs no atexit functions.

    In a process that was forked just now multiprocessing begins its work later, by forgetting what is to be finalized.
    """
    global _ended_by_multiprocessing
    util, process = _module("util"), _module("process")
    if util is None or process is None:  # an application that uses it has imported it, and so have its children
        return
    _ended_by_multiprocessing = end
    if forked_just_now:
        util.register_after_fork(_finalize, _finalize)
    elif process.parent_process() is not None:
        _finalize(None)


def _module(name: str) -> Any:
    return sys.modules.get(f"multiprocessing.{name}")


def _finalize(_: object) -> None:
    # Each generation of forks has registered it once more.
    global _finalizer_pid
    if _finalizer_pid != os.getpid():
        _finalizer_pid = os.getpid()
        _module("util").Finalize(None, _end, exitpriority=_END_PRIORITY)


def _end() -> None:
    if _ended_by_multiprocessing is not None:
        _ended_by_multiprocessing()
