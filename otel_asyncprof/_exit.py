"""How a process ends that is profiled: at exit and by a signal, each after one last profile.

A signal whose action is the default one would end the process without running any Python. It is kept back: a handler in
C tells the export thread, which exports and then dies by the very signal. It needs no Python in the main thread, and a
timer of the kernel ends what takes too long.

Python's own table gets an object that stands for the default action. Who sets a handler of his own and later puts back
what he found, as uvicorn does before it raises the signal again, so puts back this object.

A handler that is there already is left in force, and gets a stand-in in that table. When the default action takes its
place, as in gunicorn's workers, which then become uvicorn's, the table lets the stand-in go: no other moment between
the two is ours.
"""

import atexit
import functools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from otel_asyncprof import _native
from otel_asyncprof.export._periodic import EXIT_TIMEOUT

_logger = logging.getLogger(__name__)

KILL_AFTER = EXIT_TIMEOUT + 0.5  # when the main thread cannot do it
EXIT_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class DefaultAction:
    """Equal to signal.SIG_DFL, and acts alike after the last profile."""

    def __eq__(self, other: object) -> bool:
        return other is self or other == signal.SIG_DFL

    # Not that of SIG_DFL: signal.signal() would find that member by it and hand it out, and putting that back is final.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "<signal.SIG_DFL after the last profile>"

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        """Ends the process when the interpreter calls it; a handler that calls whatever was there before goes on."""
        if sys._getframe().f_back is not frame:
            return
        _native.exit_begin(signum)
        deadline = time.monotonic() + EXIT_TIMEOUT
        while (remaining := deadline - time.monotonic()) > 0:
            time.sleep(remaining)
        say_too_late(EXIT_TIMEOUT)
        _native.exit_die(signum)


DEFAULT_ACTION = DefaultAction()


class StandIn(functools.partial[Any]):
    """Equal to a handler of the application, and acts alike, without a frame; tells when Python's table lets it go."""

    def __eq__(self, other: object) -> bool:
        return other is self or self.func == other

    def __hash__(self) -> int:
        return hash(self.func)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.func, name)

    def __repr__(self) -> str:
        return repr(self.func)

    def __del__(self) -> None:
        if not sys.is_finalizing() and _takes_signals and threading.current_thread() is threading.main_thread():
            take_signals()


_takes_signals = False


def _put_in_table(number: int, handler: Any) -> None:
    """In Python's table alone. In the main thread."""
    _native.exit_signal_unmoved(number, lambda: signal.signal(number, handler))


def say_too_late(seconds: float) -> None:
    """The line about a last profile that was not exported in time."""
    _logger.warning("the last profile could not be exported (%.1f s were allowed)", seconds)


def take_signals() -> None:
    """Keeps back the signals that end the process by default; all others act as before."""
    global _takes_signals
    if os.getpid() == 1:
        return  # the kernel ignores them there
    _takes_signals = True
    in_main_thread = threading.current_thread() is threading.main_thread()
    for number in EXIT_SIGNALS:
        handler: Any = signal.getsignal(number)
        if handler is DEFAULT_ACTION:
            _native.exit_signal_take(number, True)
        elif handler == signal.SIG_DFL and _native.exit_signal_is_default(number):
            if in_main_thread:
                signal.signal(number, DEFAULT_ACTION)
            _native.exit_signal_take(number, in_main_thread)
        elif in_main_thread and callable(handler) and not isinstance(handler, StandIn):
            _put_in_table(number, StandIn(handler))


def keep_signals() -> None:
    """Takes again those for which the application has put back the default action. From any thread."""
    if os.getpid() == 1:
        return
    for number in EXIT_SIGNALS:
        handler: object = signal.getsignal(number)
        if handler == signal.SIG_DFL:
            _native.exit_signal_take(number, handler is DEFAULT_ACTION)


def give_signals_back() -> None:
    """Puts the default action back where ours still stands for it. Python's table is written by the main thread alone:
    from another thread the object stays there, and acts at once."""
    global _takes_signals
    _takes_signals = False
    _native.exit_signals_restore()
    if threading.current_thread() is threading.main_thread():
        for number in EXIT_SIGNALS:
            handler: Any = signal.getsignal(number)
            if handler is DEFAULT_ACTION:
                signal.signal(number, signal.SIG_DFL)
            elif isinstance(handler, StandIn):
                _put_in_table(number, handler.func)


class ExitWatch:
    """What the export thread sleeps by, and how it learns that the process is to die by a signal."""

    def __init__(self, takes_signals: bool, hurry: Callable[[], None]) -> None:
        self._takes_signals = takes_signals
        self._hurry = hurry
        self._number = 0

    def begin(self) -> None:
        """Before the export thread starts."""
        if self._takes_signals:
            self._number = _native.exit_watch(KILL_AFTER)

    def take_signals(self) -> None:
        """Once the export thread runs: a signal is left to it from now on."""
        if self._number:
            take_signals()

    def bell(self) -> int:
        """To be read before what the thread waits for is looked at."""
        return _native.bell()

    def ring(self) -> None:
        """Wakes the export thread."""
        _native.ring_bell()

    def wait(self, bell: int, seconds: float) -> None:
        """Until the bell is rung after it was read, or a signal comes; it may end for no reason."""
        _native.wait_for_bell(bell, seconds)

    def is_signalled(self) -> bool:
        """Whether the process is to die."""
        return self._number != 0 and _native.exit_seen(self._number) != 0

    def look_after(self) -> None:
        """Between two exports."""
        if self._number:
            keep_signals()

    def hurry(self) -> None:
        """Nothing is to be seen any more, and nothing to be tried twice."""
        self._hurry()

    def end(self) -> None:
        """The last export is done: dies by the signal that has come."""
        if self._number:
            _native.exit_end(self._number)


_at_exit: Callable[[], None] | None = None


def call_at_exit(function: Callable[[], None]) -> None:
    """Once for all runs, as unregister() would leave a hole in the table each time: the first start has the place."""
    global _at_exit
    if _at_exit is None:
        atexit.register(function)
        _at_exit = function
