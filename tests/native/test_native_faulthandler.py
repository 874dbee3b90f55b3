"""Our handlers beside CPython's faulthandler, in every order: copies survive, crashes die with a traceback."""

import itertools
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from native.base_sources import SOURCES, STRICT

# install/check/restore are ours; the copy reads unmapped memory by the guarded method, 20 times.
PRELUDE = """
import ctypes, faulthandler, resource, signal, sys, threading
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.alarm(50)
ours = ctypes.PyDLL(sys.argv[1])
for name in ("signals_install", "signals_check", "safe_copy"):
    getattr(ours, name).restype = ctypes.c_bool
ours.safe_copy.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_size_t]
buffer = ctypes.create_string_buffer(64)

def copy(times=20):
    for i in range(times):
        assert not ours.safe_copy(buffer, 0xdeadbeefdeadbee0 + i, 64)
        assert ours.safe_copy(buffer, ctypes.addressof(buffer), 8)

def start():
    assert ours.signals_install()
    ours.safe_copy_use(0)
    copy()

def check():
    assert ours.signals_check()
    copy()

def crash():
    sys.stderr.write("ready\\n")
    sys.stderr.flush()
    ctypes.string_at(8)
"""
STEPS = {"enable": "faulthandler.enable()", "disable": "faulthandler.disable()", "check": "check()"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guarded copy and its handlers as a shared library with visible names."""
    path = tmp_path_factory.mktemp("base") / "base.so"
    subprocess.run(["gcc", *STRICT, "-O2", "-fPIC", "-shared", *SOURCES, "-o", path], check=True)
    return path


def run_python(library: Path, *lines: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Runs the lines in a fresh interpreter."""
    program = PRELUDE + "\n".join(lines)
    command = [sys.executable, *options, "-c", program, str(library)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def assert_crashed(ended: subprocess.CompletedProcess[str], tracebacks: int) -> None:
    """The process reached its crash, died by SIGSEGV and printed that many fatal tracebacks."""
    assert ended.returncode == -signal.SIGSEGV, ended.stderr
    assert ended.stderr.startswith("ready\n"), ended.stderr
    assert ended.stderr.count("Fatal Python error: Segmentation fault") == tracebacks, ended.stderr


@pytest.mark.parametrize("enabled_before", [False, True])
@pytest.mark.parametrize("steps", [s for n in range(3) for s in itertools.product(STEPS, repeat=n)], ids="-".join)
def test_a_crash_prints_the_traceback_of_an_enabled_faulthandler(
    library: Path, enabled_before: bool, steps: tuple[str, ...]
) -> None:
    """However faulthandler was turned on and off around our start, it reports once if it is on, and we die."""
    lines = ["faulthandler.enable()"] * enabled_before + [
        "start()",
        *(STEPS[step] for step in steps),
        "check()",
        "crash()",
    ]
    enabled = next((step == "enable" for step in reversed(steps) if step != "check"), enabled_before)
    assert_crashed(run_python(library, *lines), tracebacks=int(enabled))


def test_faulthandler_from_the_command_line_stays_in_force_after_our_stop(library: Path) -> None:
    """Start and stop leave the interpreter's own report as it was."""
    lines = ["start()", "ours.signals_restore()"] * 20
    assert_crashed(run_python(library, *lines, "crash()", options=["-X", "faulthandler"]), tracebacks=1)


def test_toggling_faulthandler_while_another_thread_copies_kills_nobody(library: Path) -> None:
    """Our start after each change takes the signal back, however often; the sampler's own count is not used up."""
    ended = run_python(
        library,
        "for i in range(200): faulthandler.enable(); start(); faulthandler.disable(); start()",
        "check(); crash()",
    )
    assert_crashed(ended, tracebacks=0)


def test_a_crash_in_another_thread_is_reported_and_kills(library: Path) -> None:
    """The handlers are the process', not a thread's."""
    lines = [
        "start()",
        "faulthandler.enable()",
        "check()",
        "threading.Thread(target=crash).start()",
        "threading.Event().wait()",
    ]
    assert_crashed(run_python(library, *lines), tracebacks=1)


def test_a_python_handler_on_top_is_taken_below(library: Path) -> None:
    """signal.signal() would return to the faulting copy for ever; after a check it does not see it."""
    lines = [
        "start()",
        "signal.signal(signal.SIGSEGV, lambda *_: print('called'))",
        "check()",
        "signal.raise_signal(11)",
    ]
    ended = run_python(library, *lines, "copy()")
    assert (ended.returncode, ended.stdout) == (0, "called\n"), ended.stderr


def test_a_handled_signal_makes_reads_slow_for_some_seconds_only(library: Path) -> None:
    """While somebody may be reporting a crash, the reader does without handlers; then it has them again."""
    lines = [
        "import time",
        "ours.reading_begin.restype, ours.reading_check.restype = ctypes.c_char_p, ctypes.c_bool",
        "seen = []",
        "signal.signal(signal.SIGSEGV, lambda *_: seen.append(1))",
        "assert ours.reading_begin(False) is None and ours.reading_check() and ours.safe_copy_method() == 0",
        "signal.raise_signal(signal.SIGSEGV)",
        "assert seen and ours.reading_check() and ours.safe_copy_method() == 1",
        "copy()",
        "while ours.safe_copy_method() != 0: time.sleep(0.1); assert ours.reading_check()",
        "copy()",
        "ours.reading_end()",
        "print('ended')",
    ]
    ended = run_python(library, *lines)
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr


@pytest.mark.parametrize(
    "call", ["os.kill(os.getpid(), 11)", "os.abort()", "faulthandler._sigsegv()", "faulthandler._sigabrt()"]
)
def test_other_deaths_keep_their_signal(library: Path, call: str) -> None:
    """A sent SIGSEGV, an abort and faulthandler's own crashes end the process as without us."""
    expected = run_python(library, f"import os; {call}").returncode
    assert expected < 0
    assert run_python(library, "start()", f"import os; {call}").returncode == expected
