"""Looks: what was seen of one task at one time, and the time for which that stands.

An observation at time t with weight w tells of the time from t - w to t. Several observations of one task at one time
are one look: a task with two awaiters has its weight split over two stacks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

RUNNING, WAITING, READY, BLOCKED = STATES = ("running", "waiting", "ready", "blocked")


class Task(NamedTuple):
    """A task, or a thread while it runs none: what has one stack at a time."""

    process: int
    thread: str
    name: str  # of the task; empty for a thread
    span_id: bytes  # only where tasks have no names: then the span tells them apart


@dataclass(slots=True)
class Sample:
    """A stack that was seen under one span in one state, with its observations."""

    trace_id: bytes | None
    span_id: bytes | None
    process: int
    thread: str
    task: str
    state: str
    stack: int
    n: int  # observations; at least 1
    wall_ns: int
    cpu_ns: int
    wall_at: Sequence[int] = ()  # time, weight, time, weight, …; empty without a timeline
    cpu_at: Sequence[int] = ()

    @property
    def key(self) -> Task:
        """The task that was seen."""
        return Task(self.process, self.thread, self.task, b"" if self.task else self.span_id or b"")


@dataclass(slots=True)
class Look:
    """A task over some time: state, span and stacks with their shares, which add up to 1."""

    begin_ns: int
    end_ns: int
    task: Task
    state: str
    span_id: bytes | None
    stacks: list[tuple[int, float]]

    def within(self, begin_ns: int, end_ns: int) -> "Look | None":
        """Its part between two times; None when there is none."""
        begin, end = max(self.begin_ns, begin_ns), min(self.end_ns, end_ns)
        if begin >= end:
            return None
        if begin == self.begin_ns and end == self.end_ns:
            return self
        return Look(begin, end, self.task, self.state, self.span_id, self.stacks)


def looks_of(samples: Iterable[Sample]) -> list[Look]:
    """In order of their ends. Of a task no two looks that end at different times overlap."""
    seen: dict[Task, dict[tuple[int, str, bytes | None], list[tuple[int, int]]]] = {}
    for sample in samples:
        of_task = seen.setdefault(sample.key, {})
        at = sample.wall_at
        for index in range(0, len(at), 2):
            of_task.setdefault((at[index], sample.state, sample.span_id), []).append((sample.stack, at[index + 1]))
    looks = []
    for task, observed in seen.items():
        before = last = 0  # the ends of the looks before, and of those at this very time
        for (end, state, span_id), stacks in sorted(observed.items(), key=lambda item: item[0][0]):
            if end != last:
                before, last = last, end
            weight = sum(part for _, part in stacks)
            begin = max(end - weight, before)
            if begin < end:
                looks.append(Look(begin, end, task, state, span_id, [(stack, part / weight) for stack, part in stacks]))
    looks.sort(key=lambda look: look.end_ns)
    return looks


def overlap(looks: Iterable[Look]) -> bool:
    """Whether two of them stand for the same moment."""
    end = 0
    for look in sorted(looks, key=lambda look: look.begin_ns):
        if look.begin_ns < end:
            return True
        end = look.end_ns
    return False


def shared_time(looks: Sequence[Look]) -> list[float]:
    """For each look its time in nanoseconds when each moment is shared equally by all looks that stand for it.

    With n(t) looks at t, a look has the integral of 1/n over its time; all together have the length of their union.
    """
    if not overlap(looks):
        return [float(look.end_ns - look.begin_ns) for look in looks]
    changes: dict[int, int] = {}
    for look in looks:
        changes[look.begin_ns] = changes.get(look.begin_ns, 0) + 1
        changes[look.end_ns] = changes.get(look.end_ns, 0) - 1
    times = sorted(changes)
    integral, rates = [0.0], []
    n = 0
    for index, time in enumerate(times):
        n += changes[time]
        rates.append(1 / n if n else 0.0)
        if index + 1 < len(times):
            integral.append(integral[-1] + (times[index + 1] - time) * rates[-1])
    position = {time: integral[index] for index, time in enumerate(times)}
    return [position[look.end_ns] - position[look.begin_ns] for look in looks]
