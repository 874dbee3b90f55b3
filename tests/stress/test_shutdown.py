"""However a process ends, by itself or by a signal: one last profile, its own status, and in time."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from integration.collectors import SILENT, Collector, HttpCollector
from stress.deaf_collectors import DEAF, Deaf
from stress.ends import HUP, INT, START, TERM, Outcome, finish, start

from otel_asyncprof.formats.stack_sample import stack_samples

AT_ONCE = 4  # processes


@dataclass(frozen=True)
class Case:
    """A program, the signals that it gets once it is ready, and how it must end."""

    code: str
    status: int
    signals: tuple[signal.Signals, ...] = ()
    stdout: str = ""
    profiles: int = 1
    options: str = ""
    before: str = ""
    starts: bool = True


SERVER = """
import uvicorn
async def app(scope, receive, send): ...
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("ready", flush=True)
    async def shutdown(self, sockets=None):
        await super().shutdown(sockets)
        last_moments()
Server(uvicorn.Config(app, port=0, loop="{loop}", log_level="critical")).run()
print("ended", flush=True)
"""

CASES = {
    # By itself.
    "normal exit": Case("ready()", 0),
    "exception": Case("ready(); raise KeyError", 1),
    "sys.exit in a task": Case(
        "async def leave(): ready(); sys.exit(4)\n"
        "async def main(): await asyncio.create_task(leave())\nasyncio.run(main())",
        4,
    ),
    "asyncio.run has ended": Case(
        "async def main(): last_moments()\nasyncio.run(main()); print('ready', flush=True)", 0
    ),
    "daemon threads that never end": Case(
        "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
        "def spin():\n    while True: sum(range(1000))\nthreading.Thread(target=spin, daemon=True).start()\nready()",
        0,
    ),
    "stop in a task": Case("async def main(): ready(); assert profiler.stop()\nasyncio.run(main())", 0),
    "stop in a thread": Case("ready(); t = threading.Thread(target=profiler.stop); t.start(); t.join()", 0),
    "shutdown in two threads": Case(
        "ready()\nts = [threading.Thread(target=profiler.shutdown) for _ in range(2)]\n"
        "[t.start() for t in ts]; profiler.shutdown(); [t.join() for t in ts]; profiler.shutdown()",
        0,
    ),
    "shutdown in atexit": Case("import atexit; atexit.register(profiler.shutdown); ready()", 0),
    "stop in a finalizer": Case(
        "class Holder:\n    def __init__(self): self.me = self\n    def __del__(self): profiler.stop()\n"
        "holder = Holder(); ready()",
        0,
    ),
    "os._exit": Case("ready(); os._exit(5)", 5, profiles=0),
    # By a signal whose action is the default one.
    "SIGTERM": Case("ready(); rest()", -TERM, (TERM,)),
    "SIGHUP": Case("ready(); rest()", -HUP, (HUP,)),
    "SIGTERM twice": Case("ready(); rest()", -TERM, (TERM, TERM, TERM)),
    "SIGTERM while it works": Case("ready()\nwhile True: sum(range(1000))", -TERM, (TERM,)),
    "SIGTERM, main thread in C": Case(
        "import hashlib; ready(); hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9)", -TERM, (TERM,)
    ),
    "SIGTERM in asyncio": Case(
        "async def main(): ready(); await asyncio.sleep(1000)\nasyncio.run(main())", -TERM, (TERM,)
    ),
    "SIGTERM in uvloop": Case(
        "import uvloop\nasync def main(): ready(); await asyncio.sleep(1000)\nuvloop.run(main())", -TERM, (TERM,)
    ),
    "SIGTERM, main thread has ended": Case(
        "threading.Thread(target=time.sleep, args=(1000,)).start(); ready()", -TERM, (TERM,)
    ),
    "SIGTERM, started in a thread": Case(
        "t = threading.Thread(target=profiler.start); t.start(); t.join(); ready(); rest()",
        -TERM,
        (TERM,),
        starts=False,
    ),
    "raised by itself": Case("ready(); os.kill(os.getpid(), signal.SIGTERM); print('alive', flush=True)", -TERM),
    "SIGTERM, switched off": Case("ready(); rest()", -TERM, (TERM,), profiles=0, options="exit_signals=False"),
    "SIGTERM after stop": Case("last_moments(); profiler.stop(); ready(); rest()", -TERM, (TERM,)),
    "SIGTERM in a child": Case(
        "told, tells = os.pipe(); pid = os.fork()\nif not pid: ready(); os.write(tells, b'.'); rest()\n"
        "os.read(told, 1); os.kill(pid, signal.SIGTERM); status = os.waitpid(pid, 0)[1]; last_moments()\n"
        "sys.exit(status)",
        TERM,
        profiles=2,
    ),
    # By one that the application handles.
    "a handler set before": Case(
        "ready(); rest()", 7, (TERM,), before="signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"
    ),
    "a handler set after": Case("signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); ready(); rest()", 7, (TERM,)),
    "a handler that calls the one before it": Case(
        "before = signal.getsignal(signal.SIGTERM)\n"
        "def handler(number, frame):\n    if callable(before): before(number, frame)\n    sys.exit(7)\n"
        "assert signal.signal(signal.SIGTERM, handler) == signal.SIG_DFL; ready(); rest()",
        7,
        (TERM,),
    ),
    "a handler that stops the profiler": Case(
        "signal.signal(signal.SIGTERM, lambda *_: (profiler.shutdown(), sys.exit(7))); ready(); rest()",
        7,
        (TERM,),
    ),
    "ignored": Case(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nready(); sys.stdin.readline(); sys.exit(8)", 8, (TERM,)
    ),
    "a handler of the loop": Case(
        "async def main():\n    told = asyncio.Event()\n"
        "    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set); ready(); await told.wait()\n"
        "asyncio.run(main()); sys.exit(7)",
        7,
        (TERM,),
    ),
    "a handler of the loop that was removed": Case(
        "async def main():\n    loop = asyncio.get_running_loop()\n"
        "    loop.add_signal_handler(signal.SIGTERM, print); loop.remove_signal_handler(signal.SIGTERM)\n"
        "    last_moments(); profiler.force_flush(); ready(); await asyncio.sleep(1000)\nasyncio.run(main())",
        -TERM,
        (TERM,),
        profiles=2,
    ),
    "a handler that gave way to the default action, and that to one that puts it back": Case(
        "signal.signal(signal.SIGTERM, signal.SIG_DFL); told = []\n"  # an Event, set within its own wait(), hangs
        "before = signal.signal(signal.SIGTERM, lambda *_: told.append(1)); ready()\nwhile not told: time.sleep(0.01)\n"
        "signal.signal(signal.SIGTERM, before); last_moments(); signal.raise_signal(signal.SIGTERM); print('alive')",
        -TERM,
        (TERM,),
        before="signal.signal(signal.SIGTERM, print)",
    ),
    "a handler that gave way to the default action": Case(
        "signal.signal(signal.SIGTERM, signal.SIG_DFL); ready(); rest()",
        -TERM,
        (TERM,),
        before="signal.signal(signal.SIGTERM, print)",
    ),
    "uvicorn": Case(SERVER.format(loop="asyncio"), -TERM, (TERM,)),
    "uvicorn on uvloop": Case(SERVER.format(loop="uvloop"), -TERM, (TERM,)),
    "uvicorn, SIGINT": Case(SERVER.format(loop="asyncio"), -INT, (INT,)),
    "KeyboardInterrupt": Case("ready(); rest()", -INT, (INT,)),
    "KeyboardInterrupt in asyncio": Case(
        "async def main():\n    ready()\n    while True: await asyncio.sleep(0.1)\nasyncio.run(main())", -INT, (INT,)
    ),
}


def run_case(case: Case) -> tuple[Outcome, Collector]:
    """Runs a case with a collector of its own."""
    with HttpCollector() as collector:
        where = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
        code = case.before + "\n" + START * case.starts + case.code
        process = start(code, case.options, stdin=subprocess.PIPE, **where)
        return finish(process, case.signals), collector


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Future[tuple[Outcome, Collector]]]]:
    """All cases, some at a time: much of it is waiting."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(run_case, case) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_a17_one_last_profile_holds_the_last_moments(
    outcomes: dict[str, Future[tuple[Outcome, Collector]]], name: str
) -> None:
    """And the process ends as it would have without the profiler."""
    case = CASES[name]
    outcome, collector = outcomes[name].result()
    assert (outcome.status, outcome.stdout, outcome.log) == (case.status, case.stdout, []), outcome.stderr
    assert "Fatal" not in outcome.stderr
    profiles = [stack_samples([request.SerializeToString()]) for request in collector.profiles]
    assert len(profiles) == case.profiles
    if profiles:
        assert any("last_moments" in sample.functions for sample in profiles[-1])
    seen = {frame for samples in profiles for sample in samples for frame in sample.functions}
    assert not seen & {"DefaultAction.__call__", "StandIn.__call__"}


ENDS = {"sys.exit": ("sys.exit(3)", 3), "SIGTERM": ("rest()", -TERM)}
DEAF_ENDS = [(kind, "sys.exit") for kind in DEAF] + [(kind, "SIGTERM") for kind in ("Refuses", "Accepts", "NoNames")]


@pytest.fixture(scope="module")
def deaf_outcomes() -> Iterator[dict[tuple[str, str], Future[Outcome]]]:
    """All at a time: it is nothing but waiting."""

    def run(kind: str, end: str) -> Outcome:
        deaf: Deaf
        with DEAF[kind]() as deaf:
            code = START + deaf.plant + "ready(); " + ENDS[end][0]
            process = start(code, OTEL_EXPORTER_OTLP_ENDPOINT=deaf.endpoint, **deaf.variables)
            return finish(process, (TERM,) if end == "SIGTERM" else ())

    with ThreadPoolExecutor(len(DEAF_ENDS)) as pool:
        yield {(kind, end): pool.submit(run, kind, end) for kind, end in DEAF_ENDS}


@pytest.mark.parametrize(("kind", "end"), DEAF_ENDS)
def test_a16_a_collector_that_takes_nothing_delays_the_end_by_the_timeout_alone(
    deaf_outcomes: dict[tuple[str, str], Future[Outcome]], kind: str, end: str
) -> None:
    """With one line in the log. Without an end to its patience it would be here for a thousand seconds."""
    outcome = deaf_outcomes[kind, end].result()
    assert outcome.status == ENDS[end][1]
    assert len(outcome.log) == 1, outcome.stderr
    assert "Fatal" not in outcome.stderr
    assert outcome.seconds < 30


INTERRUPTED = {
    "sleeping": "ready(); rest()",
    # Short waits: a signal that comes between the interpreter's last look and a long one is not seen before its end.
    "in asyncio": "async def main():\n    ready()\n    while True: await asyncio.sleep(0.1)\nasyncio.run(main())",
    "exiting": "ready(); sys.exit(3)",
}


@pytest.mark.parametrize("end", INTERRUPTED)
def test_an_interrupt_during_the_last_export_ends_the_process(end: str) -> None:
    """The collector is silent: a second Ctrl-C says that nobody is to wait for it, and shows nothing of ours."""
    with HttpCollector(SILENT) as collector:
        process = start(START + INTERRUPTED[end], OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)

        def interrupt_the_export() -> None:
            assert collector.wait_for(lambda: len(collector.profiles) == 1)
            process.send_signal(INT)

        threading.Thread(target=interrupt_the_export, daemon=True).start()
        outcome = finish(process, () if end == "exiting" else (INT,))
    assert outcome.status == (3 if end == "exiting" else -INT)
    assert outcome.log == []
    assert "otel_asyncprof" not in outcome.stderr.replace(sys.base_prefix, "")
    assert "ignored" not in outcome.stderr, outcome.stderr


def test_a_main_thread_that_never_runs_python_dies_all_the_same() -> None:
    """The kernel's timer needs nobody: not the interpreter's lock, which is never given back here."""
    code = START + "import ctypes; ready(); ctypes.PyDLL(None).sleep(1000)"
    with HttpCollector() as collector:
        outcome = finish(start(code, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint), (TERM,))
    assert (outcome.status, outcome.stdout, outcome.stderr) == (-TERM, "", "")
    assert outcome.seconds < 30


def test_the_application_sees_the_default_action() -> None:
    """As a value; when it is put back, it is still ours, and after a stop it is the very constant."""
    code = (
        START
        + """
def disposition():
    return next(int(line.split()[1], 16) for line in open("/proc/self/status") if line.startswith("SigCgt"))
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL != signal.SIG_IGN
assert signal.getsignal(signal.SIGTERM) in (None, signal.SIG_DFL)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
before = signal.signal(signal.SIGTERM, print)
assert signal.signal(signal.SIGTERM, before) is print
assert disposition() >> 14 & 1
profiler.stop()
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
assert not disposition() >> 14 & 1 and not disposition() >> 0 & 1
ready()
"""
    )
    with HttpCollector() as collector:
        outcome = finish(start(code, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint), ())
    assert (outcome.status, outcome.stderr) == (0, "")


def test_the_application_sees_its_own_handler() -> None:
    """As an equal that does the same, with the flags that the kernel had; after a stop it is the very object."""
    code = """
class Handler:
    name = "mine"
    def __call__(self, number, frame): self.got = number, frame.f_code.co_name
handler = Handler()
signal.signal(signal.SIGTERM, handler)
signal.siginterrupt(signal.SIGTERM, False)
def flags():
    import ctypes
    words = (ctypes.c_ulong * 20)()
    assert ctypes.CDLL(None).syscall(13, signal.SIGTERM, None, words, 8) == 0  # rt_sigaction
    return list(words)
before = flags()
profiler.start()
assert flags() == before
assert signal.getsignal(signal.SIGTERM) == handler and signal.getsignal(signal.SIGTERM).name == "mine"
assert hash(signal.getsignal(signal.SIGTERM)) == hash(handler)
def raising(): signal.raise_signal(signal.SIGTERM)
raising()
assert handler.got == (signal.SIGTERM, "raising")
assert signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM)) == handler
profiler.stop()
assert signal.getsignal(signal.SIGTERM) is handler
profiler.start()
signal.signal(signal.SIGTERM, signal.SIG_DFL)
profiler.stop()
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
ready()
"""
    with HttpCollector() as collector:
        outcome = finish(start(code, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint), ())
    assert (outcome.status, outcome.stderr) == (0, "")


def test_a_handler_in_c_is_left_alone() -> None:
    """Python knows nothing of it: faulthandler has SIGTERM here, and the process lives on."""
    code = (
        "import faulthandler; faulthandler.register(signal.SIGTERM, file=open(os.devnull, 'w'))\n"
        "profiler.start(); profiler.force_flush(); ready(); sys.stdin.readline(); sys.exit(9)"
    )
    with HttpCollector() as collector:
        process = start(code, stdin=subprocess.PIPE, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)
        assert finish(process, (TERM,)).status == 9
