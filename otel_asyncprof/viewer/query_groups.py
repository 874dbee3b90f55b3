"""Runs of one statement -> its callers, its operations and how long it takes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from ..analysis.findings import percentile


@dataclass(slots=True)
class Run:
    """One run of a statement."""

    trace_id: bytes
    span_id: bytes
    start_ns: int
    duration_ns: int
    operation: str
    service: str
    caller: int | None = None  # number of a frame
    is_sampled: bool = False  # the caller is from samples; else the span says it

    @property
    def exact(self) -> bool:
        """Whether the span itself says who asked for it."""
        return not self.is_sampled


@dataclass(frozen=True, slots=True)
class CallerGroup:
    """The runs with one caller."""

    frame: int
    exact: bool
    runs: Sequence[Run]  # the slowest last

    @property
    def operations(self) -> list[tuple[tuple[str, str], int]]:
        """Service and name of the requests, with how many runs were for them; the most first."""
        return Counter((run.service, run.operation) for run in self.runs).most_common()


class Group:
    """All runs of one statement."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = sorted(runs, key=attrgetter("duration_ns", "start_ns"))

    @cached_property
    def durations_ns(self) -> list[int]:
        """Ascending."""
        return [run.duration_ns for run in self.runs]

    @cached_property
    def total_ns(self) -> int:
        """Of all runs together."""
        return sum(self.durations_ns)

    def percentile_ns(self, share: float) -> int:
        """The duration that this share of the runs does not exceed."""
        return percentile(self.durations_ns, share)

    def callers(self) -> list[CallerGroup]:
        """Exact and sampled ones apart, the most runs first."""
        found: dict[tuple[int, bool], list[Run]] = {}
        for run in self.runs:
            if run.caller is not None:
                found.setdefault((run.caller, run.exact), []).append(run)
        groups = [CallerGroup(frame, exact, runs) for (frame, exact), runs in found.items()]
        return sorted(groups, key=lambda group: (-len(group.runs), not group.exact, group.frame))

    def operations(self) -> list[tuple[tuple[str, str], int, int]]:
        """Service and name of requests, with runs and their time; the most time first."""
        totals: dict[tuple[str, str], list[int]] = {}
        for run in self.runs:
            sums = totals.setdefault((run.service, run.operation), [0, 0])
            sums[0] += 1
            sums[1] += run.duration_ns
        return sorted(((key, n, time) for key, (n, time) in totals.items()), key=lambda item: (-item[2], item[0]))

    def histogram(self) -> list[tuple[int, int]]:
        """Runs by duration: upper bounds in microseconds, each twice the one before, and how many are below."""
        counts: dict[int, int] = {}
        for run in self.runs:
            bucket = max((run.duration_ns // 1000).bit_length(), 1)
            counts[bucket] = counts.get(bucket, 0) + 1
        return (
            [(1 << bucket, counts.get(bucket, 0)) for bucket in range(min(counts), max(counts) + 1)] if counts else []
        )
