"""Runs a program as if the caller had run it: its signals, its terminal and its end are its own."""

import contextlib
import os
import resource
import signal
from collections.abc import Mapping, Sequence

# Not passed on: what cannot be, what the kernel sends for a fault of our own, and what is meant for the whole job.
_OURS = {"SIGKILL", "SIGSTOP", "SIGCHLD", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS", "SIGABRT"}
_OURS |= {"SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCONT", "SIGPIPE"}
_FORWARDED = {number for number in signal.valid_signals() if getattr(number, "name", "") not in _OURS}
_IGNORED_BY_PYTHON = [signal.SIGPIPE, signal.SIGXFSZ]
_SENT_BY_KERNEL = 1  # si_code from here on: by a terminal to all of its foreground job, the program included


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The program's exit status, or minus the signal that has ended it. OSError when it cannot be started."""
    watched = _FORWARDED | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        child = os.posix_spawnp(
            command[0], list(command), dict(environment), setsigmask=before, setsigdef=_IGNORED_BY_PYTHON
        )
        return _watch(child, watched)
    finally:
        _discard(watched)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(child: int, watched: set[signal.Signals]) -> int:
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        received = signal.sigwaitinfo(watched)
        if received.si_signo != signal.SIGCHLD and received.si_code < _SENT_BY_KERNEL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, received.si_signo)


def _discard(watched: set[signal.Signals]) -> None:
    """Takes what came too late for the program, so that it does not end us in its place."""
    while signal.sigtimedwait(watched, 0) is not None:
        pass


def end_like(status: int) -> int:
    """The exit status that stands for the program's; dies by a signal, as the program did, but dumps no core."""
    if status >= 0:
        return status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):  # of SIGKILL, whose action is always the default
        signal.signal(-status, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {-status})
    os.kill(os.getpid(), -status)
    return 128 - status
