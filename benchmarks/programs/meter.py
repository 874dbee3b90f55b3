"""What a run costs: CPU by owner, memory, and how late the loop wakes up, over one window of time."""

import asyncio
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

PROBE_SECONDS = 0.02


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
    sampler: float
    rss_mib: float


class Meter:
    """Reads the clocks at both ends of the window.

    The profiler's CPU is the process's without that of the application's threads, those that have ended included, and
    that of the external sampler's process.
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
        process = ended.process - begun.process
        application = ended.application - begun.application
        sampler = ended.sampler - begun.sampler
        return {
            "seconds": ended.real - begun.real,
            "main_cpu": ended.main - begun.main,
            "application_cpu": application,
            "profiler_cpu": max(0.0, process - application) + sampler,
            "total_cpu": process + sampler,
            "rss_mib": ended.rss_mib,
            "rss_growth_mib": ended.rss_mib - begun.rss_mib,
            "rss_peak_mib": memory_mib("VmHWM"),
        }

    def _read(self) -> Reading:
        # The main thread asks, so its own clock is read last: what it does in between counts as the application's.
        sampler = _cpu_of_process(self._sampler_pid) if self._sampler_pid else 0.0
        others = sum(_cpu_of_thread(thread) for thread in self._threads)
        rss = memory_mib("VmRSS")
        process, main = time.process_time(), time.thread_time()
        return Reading(time.monotonic(), process, main, main + others, sampler, rss)


def memory_mib(key: str) -> float:
    """A line of /proc/self/status in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"/proc/self/status has no {key}")


def _cpu_of_thread(thread: threading.Thread) -> float:
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def _cpu_of_process(pid: int) -> float:
    """All threads of another process. The id of its clock is what clock_getcpuclockid() makes of the pid on Linux."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError as error:
        raise RuntimeError(f"the sampler's process {pid} has ended: {os.strerror(error.errno or 0)}") from error
