"""What a run costs: CPU by owner, memory, and how late the loop wakes up, over one window of time."""

import asyncio
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

PROBE_SECONDS = 0.02

# Linux makes the id of a CPU clock of the inverted id of the process or thread, shifted by three bits, and these.
_OF_PROCESS = 2
_OF_THREAD = 6


@dataclass
class Lateness:
    """How much later than due a timer of the loop fired, in seconds, once every PROBE_SECONDS."""

    seen: list[float] = field(default_factory=list)

    async def probe(self) -> None:
        """Sleeps and notes, until it is cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            due = clock() + PROBE_SECONDS
            await asyncio.sleep(PROBE_SECONDS)
            self.seen.append(clock() - due)

    def figures(self) -> dict[str, float]:
        """p50, p99 and the maximum, in milliseconds."""
        if not self.seen:
            return {}
        ordered = sorted(self.seen)
        return {
            "late_p50_ms": 1e3 * quantile(ordered, 0.5),
            "late_p99_ms": 1e3 * quantile(ordered, 0.99),
            "late_max_ms": 1e3 * ordered[-1],
        }


def quantile(ordered: list[float], share: float) -> float:
    """The value below which the share of the ordered values lies: one of the values."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Reading:
    """All clocks at one instant, in seconds."""

    real: float
    process: float
    main: float
    application: float
    profiler: float
    rss_mib: float


class Meter:
    """Reads the clocks at both ends of the window.

    The profiler's CPU is that of all threads which the application does not own, and that of an external sampler's
    process. What a profiler does on the application's own threads is the application's: it does less work per second.
    """

    def __init__(self, sampler_pid: int | None = None) -> None:
        self._sampler_pid = sampler_pid
        self._threads: list[threading.Thread] = []
        self._begun: Reading | None = None

    def own(self, threads: list[threading.Thread]) -> None:
        """Threads of the application beside the main thread; they must live until the end of the window."""
        self._threads = threads

    def begin(self) -> None:
        """The window opens."""
        self._begun = self._read()

    def end(self) -> dict[str, float]:
        """The figures of the window that closes now."""
        begun, ended = self._begun, self._read()
        assert begun is not None
        return {
            "seconds": ended.real - begun.real,
            "main_cpu": ended.main - begun.main,
            "application_cpu": ended.application - begun.application,
            "profiler_cpu": ended.profiler - begun.profiler,
            "total_cpu": ended.process - begun.process,
            "rss_mib": ended.rss_mib,
            "rss_growth_mib": ended.rss_mib - begun.rss_mib,
            "rss_peak_mib": memory_mib("VmHWM"),
        }

    def _read(self) -> Reading:
        rss = memory_mib("VmRSS")
        sampler = _clock((~self._sampler_pid << 3) | _OF_PROCESS) if self._sampler_pid else 0.0
        application = {thread.native_id for thread in (threading.main_thread(), *self._threads)}
        threads = {int(name) for name in os.listdir("/proc/self/task")} - application
        profiler = sampler + sum(_clock((~thread << 3) | _OF_THREAD) for thread in threads)
        others = sum(_clock(time.pthread_getcpuclockid(thread.ident or 0)) for thread in self._threads)
        main = time.thread_time()
        return Reading(time.monotonic(), time.process_time() + sampler, main, main + others, profiler, rss)


def memory_mib(key: str) -> float:
    """A line of /proc/self/status in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"/proc/self/status has no {key}")


def _clock(clock: int) -> float:
    """A CPU clock; nothing for a thread or process that has ended."""
    try:
        return time.clock_gettime(clock)
    except OSError:
        return 0.0
