"""SIGSEGV and SIGBUS under dispute: the sampler faults all the time, and only real crashes kill, as without us."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from stress.signal_programs import FATAL, HERE, TIMEOUT_SECONDS, RunSteps, assert_crashed

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs are written for Linux on x86-64")


# faulthandler


@pytest.mark.parametrize(
    ("options", "variables"),
    [(["-X", "faulthandler"], {}), ([], {"PYTHONFAULTHANDLER": "1"})],
    ids=["option", "variable"],
)
def test_faulthandler_of_the_interpreter_itself_reports_a_crash_once(
    run_anew: RunSteps, options: list[str], variables: dict[str, str]
) -> None:
    """It is on before anything of ours is imported, and survives two starts and a stop."""
    steps = ["begin_faults()", "heal()", "stop()", "begin_faults()", "crash()"]
    assert_crashed(run_anew(*steps, options=options, **variables), tracebacks=1)


def test_an_import_installs_nothing_and_a_stop_puts_everything_back(run_anew: RunSteps) -> None:
    """The kernel's own words for both signals, before and after, with faulthandler and without."""
    steps = [
        "for step in (lambda: None, faulthandler.enable, lambda: take(END, SA_ONSTACK)):",
        "    step()",
        "    before = raw_actions()",
        "    import otel_asyncprof, otel_asyncprof.testing, otel_asyncprof.instrumentor",
        "    assert raw_actions() == before",
        "    for _ in range(3):",
        "        begin_faults()",
        "        assert raw_actions() != before",
        "        heal(); stop()",
        "        assert raw_actions() == before",
        "os._exit(0)",
    ]
    assert run_anew(*steps) == (0, "")


ENABLED = {
    "before-start": ["faulthandler.enable()", "begin_faults()"],
    "before-start-and-off": [
        "faulthandler.enable()",
        "begin_faults()",
        "with between_faults(): faulthandler.disable()",
    ],
    "after-start": ["begin_faults()", "with between_faults(): faulthandler.enable()"],
    "after-start-and-off": [
        "begin_faults()",
        "with between_faults(): faulthandler.enable()",
        "with between_faults(): faulthandler.disable()",
    ],
    "ten-times": ["begin_faults()", "for _ in range(10):", "    with between_faults(): faulthandler.enable()"],
    "on-and-off-ten-times": [
        "begin_faults()",
        "for _ in range(10):",
        "    with between_faults(): faulthandler.disable(); faulthandler.enable()",
    ],
    "from-threads": [
        "begin_faults()",
        "for _ in range(10):",
        "    with between_faults(): in_thread(faulthandler.disable); in_thread(faulthandler.enable)",
    ],
    "over-stops": [
        "for _ in range(12): start(); faulthandler.enable(); stop(); faulthandler.disable(); start(); stop()",
        "begin_faults()",
    ],
}


OFF_AT_THE_END = {"before-start-and-off", "after-start-and-off", "over-stops"}


@pytest.mark.parametrize("order", ENABLED)
def test_a14_a_crash_is_reported_by_faulthandler_if_it_is_on(run: RunSteps, order: str) -> None:
    """However it was turned on and off, the sampler's faults are none of its business."""
    tracebacks = int(order not in OFF_AT_THE_END)
    assert_crashed(run(*ENABLED[order], "await_count('faults')", "crash()"), tracebacks)


def test_faulthandler_may_come_and_go_amid_faults(run: RunSteps) -> None:
    """No gap between its arrival and our next check kills: it raises the signal anew, and we let the copy fail."""
    steps = ["begin_faults()", "for _ in range(200): faulthandler.enable(); time.sleep(0.001); faulthandler.disable()"]
    status, errors = run(*steps, "end_in_peace()")
    assert status == 0, errors


def test_pytest_with_its_faulthandler_plugin_runs_and_crashes_as_ever(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The plugin's handler is there before ours and reports once, into its own copy of stderr."""
    test = tmp_path / "test_it.py"
    test.write_text(
        "from signal_steps import *\n"
        "def test_peace():\n    begin()\n    begin_faults()\n    heal()\n    stop()\n"
        "def test_crash():\n    begin_faults()\n    crash()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    ended = subprocess.run(
        command,
        env=environment | {"PYTHONPATH": str(HERE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    reached = "test_crash" in ended.stderr
    assert (ended.returncode, ended.stderr.count(FATAL), reached) == (-signal.SIGSEGV, 1, True), ended.stderr


# Foreign components

TAKEN = [
    f"take({kind}, {flags})"
    for kind in ("CHAIN", "RESTORE", "END")
    for flags in ("0", "SA_ONSTACK", "SA_NODEFER", "SA_RESETHAND", "SA_ONSTACK | SA_RESETHAND | SA_NODEFER")
]
TAKEN += [
    "take(CHAIN_BY_NUMBER)",
    "take(END_BY_NUMBER)",
    "take(CHAIN, 0, signal.SIGSEGV)",
    "take(CHAIN, 0, signal.SIGBUS)",
]


@pytest.mark.parametrize("taken", TAKEN)
def test_a_component_that_takes_the_signals_gets_crashes_and_nothing_else(run: RunSteps, taken: str) -> None:
    """Before our start or after it, with faulthandler below: it is told of the crash once, and of our faults never."""
    after = [f"with between_faults(): {taken}", "await_count('faults')", "assert stats()['copy_method'] == 'guarded'"]
    foreign = int("SIGBUS" not in taken)
    tracebacks = int("END" not in taken)
    for steps in ([taken, "begin_faults()", "crash()"], ["begin_faults()", *after, "in_thread(crash)"]):
        assert_crashed(run("faulthandler.enable()", *steps), tracebacks, foreign)


LIKE_THEMSELVES = ["CHAIN", "RESTORE", "CHAIN, SA_NODEFER", "CHAIN, SA_ONSTACK", "RESTORE, SA_RESETHAND"]


@pytest.mark.parametrize("taken", LIKE_THEMSELVES)
def test_a_component_that_comes_and_goes_amid_faults_kills_nobody(run: RunSteps, taken: str) -> None:
    """Also in the middle of a tick, since it leads to us."""
    steps = [
        "begin_faults()",
        "foreign.look_around(11); foreign.look_around(7)",
        f"for _ in range(300): take({taken}); time.sleep(0.0005); foreign.give_back(11); foreign.give_back(7)",
    ]
    assert run(*steps, "foreign.forget_what_was_said()", "end_in_peace()")[0] == 0


def test_a_component_that_insists_is_left_in_peace_and_that_is_said_once(run: RunSteps) -> None:
    """Then memory is read by the system call; the component's handler stays when we stop."""
    steps = [
        "begin_faults()",
        "for _ in range(8):",
        "    with between_faults(): take(END)",
        "assert stats()['copy_method'] == 'syscall'",
        "theirs = raw_actions()",
        "await_count('faults'); await_count('samples')",
        "heal(); stop()",
        "assert raw_actions() == theirs",
        "begin_faults(); assert stats()['copy_method'] == 'guarded'",
        "heal(); stop()",
        "crash()",
    ]
    status, errors = run(*steps)
    assert (status, errors) == (
        -signal.SIGSEGV,
        "otel_asyncprof: another component keeps SIGSEGV or SIGBUS for itself: memory is read by process_vm_readv, "
        "which takes many times longer, so that less is seen\nforeign\n",
    )


def test_a_handler_that_only_returns_cannot_hold_the_sampler(run: RunSteps) -> None:
    """A fault comes back for ever under signal.signal() and its like, until a thread waits for the sampler."""
    steps = [
        "begin_faults()",
        "for _ in range(3):",
        "    signal.signal(signal.SIGSEGV, lambda *_: None)",
        "    take(RETURN, 0, signal.SIGSEGV)",
        "    await_count('ticks')",
        "signal.signal(signal.SIGSEGV, lambda *_: None)",
        "end_in_peace()",
    ]
    assert run(*steps)[0] == 0  # where it may say that somebody insists


# Signals that are sent


@pytest.mark.parametrize("number", ["SIGSEGV", "SIGBUS"])
def test_a_signal_from_outside_kills_with_one_traceback(run: RunSteps, number: str) -> None:
    """kill -SEGV ends a process as without us."""
    steps = ["faulthandler.enable()", "begin_faults()", f"os.kill(os.getpid(), signal.{number})", "time.sleep(60)"]
    status, errors = run(*steps)
    assert (status, errors.count("Fatal Python error")) == (-signal.Signals[number], 1), errors


def test_a_python_handler_gets_each_signal_that_is_sent(run: RunSteps) -> None:
    """Before our start or after it; our faults do not reach it."""
    for first in (["begin_faults()", "with between_faults(): {}"], ["{}", "begin_faults()"]):
        steps = [
            "seen = []",
            *(step.format("signal.signal(signal.SIGSEGV, lambda *_: seen.append(1))") for step in first),
            "for n in range(1, 51):",
            "    os.kill(os.getpid(), signal.SIGSEGV)",
            "    wait_until(lambda: len(seen) >= n)",
            "assert len(seen) == 50",
            "end_in_peace()",
        ]
        assert run(*steps) == (0, "")


def test_an_application_that_blocks_everything_keeps_its_signals(run: RunSteps) -> None:
    """What it waits for is not taken by our thread, which blocks all others itself."""
    steps = [
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
        "begin_faults()",
        "mask = int(open(sampler_thread() + 'status').read().split('SigBlk:')[1].split()[0], 16)",
        "open_ones = {n for n in signal.valid_signals() if not mask >> n - 1 & 1} - {signal.SIGKILL, signal.SIGSTOP}",
        "assert open_ones == {signal.SIGSEGV, signal.SIGBUS, signal.SIGSYS}, open_ones",
        "for number in (signal.SIGSEGV, signal.SIGUSR1, signal.SIGTERM, signal.SIGBUS, signal.SIGCHLD):",
        "    os.kill(os.getpid(), number)",
        "    await_count('ticks', 5)",
        "    assert signal.sigtimedwait({number}, 50).si_signo == number",
        "end_in_peace()",
    ]
    assert run(*steps) == (0, "")


# Sandboxes

NO_HANDLERS = "refuse(RT_SIGACTION, EPERM, only_handlers_of=signal.SIGSEGV)"
NO_SYSTEM_CALL = "refuse(PROCESS_VM_READV, {})"


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS", "KILL"])
def test_without_the_system_call_the_handlers_suffice(run: RunSteps, error: str) -> None:
    """Also for the self-check, in a thread that blocks the very signals."""
    steps = [
        NO_SYSTEM_CALL.format(error),
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
        "before = raw_actions()",
        "begin_faults()",
        "await_count('samples')",
        "assert stats()['copy_method'] == 'guarded'",
        "heal(); stop()",
        "assert raw_actions() == before",
        "os._exit(0)",
    ]
    assert run(*steps) == (0, "")


def test_without_handlers_the_system_call_is_used_and_that_is_said_once(run: RunSteps) -> None:
    """Once for each profiler, by its log and its counters."""
    steps = [NO_HANDLERS, "begin_faults()", "await_count('samples')", "assert stats()['copy_method'] == 'syscall'"]
    status, errors = run(*steps, "end_in_peace()")
    assert (status, errors.count("memory is read by process_vm_readv")) == (0, 1), errors


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_without_both_the_profiler_refuses_and_says_why(run: RunSteps, error: str) -> None:
    """Nothing that samples nothing."""
    steps = [
        NO_HANDLERS,
        NO_SYSTEM_CALL.format(error),
        "from otel_asyncprof import Profiler",
        "assert not Profiler(exporter='console').start()",
        "assert threading.active_count() == len(os.listdir('/proc/self/task')) == 1",
        "os._exit(0)",
    ]
    assert run(*steps) == (
        0,
        "otel_asyncprof does not profile this process: memory can be read neither with handlers of SIGSEGV and SIGBUS, "
        "which another component keeps for itself, nor by process_vm_readv, which is refused here (seccomp?)\n",
    )


def test_handlers_lost_where_the_system_call_is_refused_end_the_sampling(run: RunSteps) -> None:
    """The application goes on, and one line says that it is not sampled any more."""
    steps = [
        NO_SYSTEM_CALL.format("EPERM"),
        "begin_faults()",
        "for _ in range(4):",
        "    heal(); await_count('ticks', 3)",
        "    take(END)",
        "    wait_until(lambda: stats()['copy_method'] == 'none') if _ == 3 else await_count('ticks', 3)",
        "ticks = stats()['ticks']",
        "poison(); time.sleep(0.3)",
        "assert stats()['ticks'] == ticks",
        "heal(); stop()",
        "os._exit(0)",
    ]
    assert run(*steps) == (
        0,
        "otel_asyncprof: another component keeps SIGSEGV or SIGBUS for itself, and process_vm_readv is refused: "
        "nothing is sampled any more\n",
    )
