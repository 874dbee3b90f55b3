"""Two recordings of the same work, side by side."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .findings import Findings, percentile
from .split import Split

# A change of less than this is within what a clock and a scheduler make of the same work.
LEAST_CHANGE_NS = 1_000_000


@dataclass(frozen=True)
class Change:
    """One measure in both recordings, in nanoseconds."""

    name: str
    before_ns: float
    after_ns: float

    @property
    def difference_ns(self) -> float:
        """More than 0: it takes more time now."""
        return self.after_ns - self.before_ns

    @property
    def ratio(self) -> float:
        """By which share it has grown; infinite when it was nothing before."""
        if self.before_ns:
            return self.difference_ns / self.before_ns
        return float("inf") if self.difference_ns > 0 else 0.0

    def exceeds(self, share: float) -> bool:
        """Whether it takes more time now by more than the share, and by more than a trifle."""
        return self.difference_ns >= LEAST_CHANGE_NS and self.ratio > share


@dataclass(frozen=True)
class Operation:
    """One kind of request in both recordings."""

    name: str
    n_before: int
    n_after: int
    mean: Change
    p95: Change
    split: Sequence[Change]  # of one request, by state


@dataclass(frozen=True)
class Comparison:
    """What has changed. Functions: time at the function itself, per request when both have requests, else of all."""

    operations: Sequence[Operation]
    cpu: Change
    functions: Sequence[Change]
    per_request: bool

    def regressions(self, share: float) -> list[Change]:
        """What takes more time by more than the share: operations, or the CPU time when there are none to compare."""
        measures = [operation.mean for operation in self.operations] or [self.cpu]
        return [change for change in measures if change.exceeds(share)]


@dataclass(frozen=True)
class _Operation:
    durations_ns: Sequence[int]  # ascending
    split: Split


def compare(before: Findings, after: Findings) -> Comparison:
    """Operations are matched by the names of their root spans, functions by name and file."""
    old, new = _operations(before), _operations(after)
    both = [name for name in new if name in old]
    n_before, n_after = (sum(len(of[name].durations_ns) for name in both) for of in (old, new))
    divisors = (n_before, n_after) if both else (1, 1)
    operations = [_compared(name, old[name], new[name]) for name in both]
    return Comparison(
        operations=sorted(operations, key=lambda operation: -operation.mean.difference_ns),
        cpu=Change("CPU time", _cpu(before) / divisors[0], _cpu(after) / divisors[1]),
        functions=_functions(before, after, divisors),
        per_request=bool(both),
    )


def _operations(findings: Findings) -> Mapping[str, _Operation]:
    durations: dict[str, list[int]] = {}
    splits: dict[str, Counter[str]] = {}
    for slow in findings.requests():
        durations.setdefault(slow.span.name, []).append(slow.span.duration_ns)
        splits.setdefault(slow.span.name, Counter()).update(slow.split)
    return {name: _Operation(sorted(values), splits[name]) for name, values in durations.items()}


def _compared(name: str, old: _Operation, new: _Operation) -> Operation:
    n_before, n_after = len(old.durations_ns), len(new.durations_ns)
    states = sorted(old.split.keys() | new.split.keys())
    return Operation(
        name=name,
        n_before=n_before,
        n_after=n_after,
        mean=Change(name, sum(old.durations_ns) / n_before, sum(new.durations_ns) / n_after),
        p95=Change(name, percentile(old.durations_ns, 0.95), percentile(new.durations_ns, 0.95)),
        split=[
            Change(state, old.split.get(state, 0) / n_before, new.split.get(state, 0) / n_after) for state in states
        ],
    )


def _cpu(findings: Findings) -> int:
    return sum(sample.cpu_ns for sample in findings.samples)


def _functions(before: Findings, after: Findings, divisors: tuple[int, int]) -> list[Change]:
    old, new = _own_time(before), _own_time(after)
    changes = [
        Change(f"{function} ({file})", old[function, file] / divisors[0], new[function, file] / divisors[1])
        for function, file in old.keys() | new.keys()
    ]
    return sorted(changes, key=lambda change: (-abs(change.difference_ns), change.name))


def _own_time(findings: Findings) -> Counter[tuple[str, str]]:
    totals: Counter[tuple[str, str]] = Counter()
    for sample in findings.samples:
        if sample.frames:
            leaf = sample.frames[-1]
            totals[leaf.function, leaf.file] += sample.wall_ns
    return totals
