"""What the programs of the signal tests are made of: tasks that make the sampler fault, foreign handlers, crashes.

As a program: reads programs, one JSON object a line, runs each in a process forked from this one, and answers with its
exit status.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler  # noqa: F401
import gc
import json
import logging
import mmap
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

TIMEOUT_SECONDS = 60
DEATH_SECONDS = 20  # two on a machine of its own
TASKS = 20
FAULTS = 200

CHAIN, RESTORE, END, CHAIN_BY_NUMBER, END_BY_NUMBER, RETURN = range(6)
SA_ONSTACK, SA_NODEFER, SA_RESETHAND = 0x08000000, 0x40000000, 0x80000000

_libc = ctypes.PyDLL(None)
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
foreign = ctypes.CDLL(os.environ["FOREIGN_HANDLERS"])
_profilers: list[Any] = []


def begin() -> None:
    """What each program does first: no core files, and an end in any case."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(TIMEOUT_SECONDS)
    logging.basicConfig(format="%(message)s")
    foreign.forget_what_was_said()


# The profiler.


def start() -> Any:
    """A profiler at 1 kHz with a core to itself."""
    from otel_asyncprof import Profiler
    from otel_asyncprof.export.in_memory import InMemoryProfileExporter

    profiler = Profiler(exporter=InMemoryProfileExporter(), rate=1000, cpu_budget=1.0, interval=0.1)
    profiler.start_or_raise()
    _profilers.append(profiler)
    return profiler


def stop() -> None:
    """Ends the last profiler; it must have ended in order."""
    assert _profilers.pop().shutdown(30_000)


def stats() -> Any:
    """The sampler's counters."""
    import otel_asyncprof._native

    return otel_asyncprof._native.stats()


def await_count(counter: str, more: int = FAULTS) -> None:
    """Works until a counter of the sampler has grown."""
    end = stats()[counter] + more
    wait_until(lambda: stats()[counter] >= end)


def wait_until(condition: Callable[[], bool]) -> None:
    """Works, since a sampler has nothing to look at in a process at rest; the alarm ends a wait in vain."""
    while not condition():
        sum(range(1000))
        time.sleep(0.0005)


# Tasks in which the sampler faults.

_libc.mmap.restype = ctypes.c_uint64
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_unreadable = _libc.mmap(None, mmap.PAGESIZE, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
_poisoned: list[tuple[int, int]] = []  # where a pointer stands, and what it was
_kept: list[Any] = []


async def _suspended(future: asyncio.Future[None]) -> None:
    await future


def make_tasks() -> None:
    """Suspended tasks of a loop that does not run."""
    loop = asyncio.new_event_loop()
    tasks = [loop.create_task(_suspended(loop.create_future())) for _ in range(TASKS)]
    loop.run_until_complete(asyncio.sleep(0, None))
    loop.run_until_complete(asyncio.sleep(0, None))
    _kept.extend([loop, tasks])
    gc.disable()
    for task in tasks:
        future = id(task._fut_waiter)  # type: ignore[attr-defined]
        words = (ctypes.c_uint64 * (type(task).__basicsize__ // 8)).from_address(id(task))
        _poisoned.append((id(task) + 8 * list(words).index(future), future))


def poison() -> None:
    """What each task waits for is now at an address that nobody can read."""
    if not _poisoned:
        make_tasks()
    for place, _ in _poisoned:
        ctypes.c_uint64.from_address(place).value = _unreadable


def heal() -> None:
    """The tasks are as they were."""
    for place, future in _poisoned:
        ctypes.c_uint64.from_address(place).value = future


@contextlib.contextmanager
def between_faults() -> Iterator[None]:
    """Nothing faults in the block, nor until a check has followed it."""
    heal()
    await_count("ticks", 3)
    yield
    await_count("ticks", 3)
    poison()


def begin_faults() -> None:
    """The sampler runs and faults. (A start itself looks at the tasks, with Python's own means.)"""
    start()
    poison()
    await_count("faults")


def end_in_peace() -> None:
    """The sampler faults on, ends in order, and so does the process."""
    await_count("faults")
    heal()
    stop()
    sys.stderr.flush()
    os._exit(0)


# Foreign handlers and crashes.


def take(kind: int, flags: int = 0, *numbers: int) -> None:
    """A foreign component takes signals, by default both."""
    for number in numbers or (signal.SIGSEGV, signal.SIGBUS):
        foreign.take(int(number), kind, ctypes.c_int(flags & 0xFFFFFFFF))


def raw_actions() -> bytes:
    """The actions of both signals as the kernel has them."""
    words = (ctypes.c_uint64 * 8)()
    found = b""
    for number in (signal.SIGSEGV, signal.SIGBUS):
        foreign.raw_action(int(number), words)
        found += bytes(words)
    return found


def in_thread(function: Callable[[], object]) -> None:
    """Runs it in a thread of its own, to the end."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def crash() -> None:
    """A real fault of the application, of which it must die."""
    signal.alarm(DEATH_SECONDS)
    ctypes.PyDLL(None).memset(8, 0, 1)


def pass_a_signal_on() -> None:
    """A signal that is sent goes to who had it before us; for a while memory is read by the system call."""
    seen: list[int] = []
    heal()
    stop()
    signal.signal(signal.SIGBUS, lambda *_: seen.append(1))
    begin_faults()
    os.kill(os.getpid(), signal.SIGBUS)
    wait_until(lambda: bool(seen))


def sampler_thread() -> str:
    """The sampler's folder in /proc."""
    for thread in os.listdir("/proc/self/task"):
        folder = f"/proc/self/task/{thread}/"
        with open(folder + "comm") as file:
            if file.read().strip() == "otel_asyncprof":
                return folder
    raise AssertionError("no sampler thread")


def crash_sampler() -> None:
    """Writes a read of address 8 where the sampler's code stands."""
    import otel_asyncprof._native

    library = otel_asyncprof._native.__file__
    symbols = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    offset = re.search(r"^([0-9a-f]+) [tT] tick_run$", symbols, flags=re.MULTILINE)
    assert offset
    with open("/proc/self/maps") as maps:
        base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(os.path.basename(library)))
    signal.alarm(DEATH_SECONDS)
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(base + int(offset[1], 16))
        memory.write(b"\x8b\x04\x25\x08\x00\x00\x00")
    while True:
        sum(range(1000))


# A sandbox.

PROCESS_VM_READV, RT_SIGACTION, EPERM, ENOSYS, KILL = 310, 13, 1, 38, -1


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.c_void_p))


def refuse(system_call: int, error: int, only_handlers_of: int | None = None) -> None:
    """This thread and its children get that error, or die; of rt_sigaction() only for what changes one signal."""
    load, equal, answer = 0x20, 0x15, 0x06
    allow, refusal = 0x7FFF0000, 0x80000000 if error == KILL else 0x00050000 | error
    steps = [(load, 0, 0, 0)]  # the number
    if only_handlers_of is None:
        steps += [(equal, 0, 1, system_call), (answer, 0, 0, refusal)]
    else:
        steps += [(equal, 0, 5, system_call), (load, 0, 0, 16), (equal, 0, 3, only_handlers_of)]
        steps += [(load, 0, 0, 24), (equal, 1, 0, 0), (answer, 0, 0, refusal)]  # the low half of what to install
    steps += [(answer, 0, 0, allow)]
    program = (_Instruction * len(steps))(*steps)
    whole = _Program(len(steps), ctypes.addressof(program))
    assert _libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
    assert _libc.prctl(22, 2, ctypes.addressof(whole), 0, 0) == 0  # seccomp, filter


def _serve() -> None:
    import otel_asyncprof.testing  # noqa: F401

    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        os.dup2(os.open(order["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        try:
            begin()
            exec(order["program"], globals())
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(70)
        os._exit(71)  # programs end otherwise


if __name__ == "__main__":
    _serve()
