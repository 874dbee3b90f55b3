"""For tests, ours and yours: profile a block and look at what would have been sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._config import SAMPLE_ATTRIBUTES, ProfilerConfig
from ._profiler import Profiler
from .export.in_memory import InMemoryProfileExporter
from .formats.stack_sample import Frame, StackSample, stack_samples

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from ._native import Stats

__all__ = ["CapturedProfile", "CapturedStats", "Frame", "StackSample", "capture"]


@dataclass(frozen=True)
class CapturedStats:
    """What the sampler did during the block."""

    ticks: int
    samples: int
    faults: int
    tasks_seen: int
    tasks_visited: int
    threads_seen: int
    sampler_cpu_seconds: float
    elapsed_seconds: float
    window: float  # at the end: a suspended task is looked at in one of so many ticks
    visit_ns: int  # cost of one suspended task, smoothed
    tick_ns: int  # cost of one tick, smoothed
    copy_method: str
    drops: dict[str, int]  # reason -> count, without zeros


class CapturedProfile:
    """Empty while the block runs, filled when it ends."""

    def __init__(self) -> None:
        self.samples: list[StackSample] = []
        self.requests: tuple[bytes, ...] = ()
        self._stats: CapturedStats | None = None

    @property
    def stats(self) -> CapturedStats:
        """RuntimeError while the block runs."""
        if self._stats is None:
            raise RuntimeError("the stats are there when the block has ended")
        return self._stats


@contextmanager
def capture(
    rate: int = 100,
    *,
    tracer_provider: "TracerProvider | None" = None,
    tasks_per_tick: int | None = None,
    **options: Any,
) -> Iterator[CapturedProfile]:
    """Profiles the block with the given options, all others at their defaults whatever the environment says.

    All sample attributes are asked for, and the sampler may use a whole core: a test is to see every tick.
    tasks_per_tick limits how many slots of asyncio's task set one tick looks at; by default the budget does that.

    Raises ProfilerUnavailable when this process cannot be profiled, or is already.
    """
    options.setdefault("sample_attributes", SAMPLE_ATTRIBUTES)
    options.setdefault("cpu_budget", 1.0)
    exporter = InMemoryProfileExporter()
    profiler = Profiler(ProfilerConfig(rate=rate, **options), exporter=exporter, tracer_provider=tracer_provider)
    profiler._tasks_per_tick = tasks_per_tick or 0
    profile = CapturedProfile()
    profiler.start_or_raise()
    before = profiler.stats()
    try:
        yield profile
    finally:
        complete = profiler.stop(timeout_millis=30_000)
        after = profiler.stats()
        profiler.shutdown()
        profile.requests = exporter.get_finished_requests()
        profile.samples = stack_samples(profile.requests)
        if before is not None and after is not None:
            profile._stats = _difference(before, after)
    if not complete:
        raise RuntimeError("a part of the profile could not be collected; the log says why")


def _difference(before: "Stats", after: "Stats") -> CapturedStats:
    drops = {reason: count - before["drops"].get(reason, 0) for reason, count in after["drops"].items()}
    return CapturedStats(
        ticks=after["ticks"] - before["ticks"],
        samples=after["samples"] - before["samples"],
        faults=after["faults"] - before["faults"],
        tasks_seen=after["tasks_seen"] - before["tasks_seen"],
        tasks_visited=after["tasks_visited"] - before["tasks_visited"],
        threads_seen=after["threads_seen"] - before["threads_seen"],
        sampler_cpu_seconds=(after["sampler_cpu_ns"] - before["sampler_cpu_ns"]) / 1e9,
        elapsed_seconds=(after["elapsed_ns"] - before["elapsed_ns"]) / 1e9,
        window=after["window"],
        visit_ns=after["visit_ns"],
        tick_ns=after["tick_ns"],
        copy_method=after["copy_method"],
        drops={reason: count for reason, count in drops.items() if count},
    )
