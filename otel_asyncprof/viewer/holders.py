"""Who held the loop while a task of a trace could have run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from . import intervals
from .looks import BLOCKED, READY, RUNNING, Look, Task

Loop = tuple[int, str]  # process, thread


@dataclass(slots=True)
class Holder:
    """A task under a span, with the time for which it kept others waiting."""

    look: Look  # the first
    times: dict[str, int] = field(default_factory=dict)  # by state
    stacks: dict[int, int] = field(default_factory=dict)  # time by stack
    pieces: list[intervals.Interval] = field(default_factory=list)

    @property
    def total_ns(self) -> int:
        """In all states."""
        return sum(self.times.values())

    @property
    def state(self) -> str:
        """The one with the most time."""
        return max(self.times, key=lambda state: (self.times[state], state))

    @property
    def stack(self) -> int:
        """The one with the most time."""
        return max(self.stacks, key=lambda stack: self.stacks[stack])


@dataclass(slots=True)
class Held:
    """The whole answer: what is not of a holder is unexplained."""

    ready_ns: int = 0
    unexplained_ns: int = 0
    holders: list[Holder] = field(default_factory=list)


def ready_times(looks: Iterable[Look]) -> dict[Loop, list[intervals.Interval]]:
    """When something was ready, for each loop."""
    found: dict[Loop, list[intervals.Interval]] = {}
    for look in looks:
        if look.state == READY:
            found.setdefault((look.task.process, look.task.thread), []).append((look.begin_ns, look.end_ns))
    return {loop: intervals.union(times) for loop, times in found.items()}


def holders_of(ready: dict[Loop, list[intervals.Interval]], looks: Sequence[Look]) -> Held:
    """Looks: of all that ran on these loops at these times, whatever trace it belongs to.

    A moment at which two were seen to run (tasks change within a tick) counts for the one that was seen first.
    """
    held = Held()
    for loop, times in ready.items():
        left = times
        held.ready_ns += intervals.length(times)
        found: dict[tuple[Task, bytes | None], Holder] = {}
        running = [
            look for look in looks if (look.task.process, look.task.thread) == loop and look.state in (RUNNING, BLOCKED)
        ]
        for look in sorted(running, key=lambda look: (look.begin_ns, look.end_ns)):
            shared = intervals.common([(look.begin_ns, look.end_ns)], _from(left, look.begin_ns))
            if not shared:
                continue
            left = intervals.without(left, shared)
            stack = max(look.stacks, key=lambda item: item[1])[0]
            time = intervals.length(shared)
            holder = found.setdefault((look.task, look.span_id), Holder(look))
            holder.times[look.state] = holder.times.get(look.state, 0) + time
            holder.stacks[stack] = holder.stacks.get(stack, 0) + time
            holder.pieces += shared
        held.unexplained_ns += intervals.length(left)
        for holder in found.values():
            holder.pieces = intervals.union(holder.pieces)
            held.holders.append(holder)
    held.holders.sort(key=lambda holder: (-holder.total_ns, holder.look.begin_ns))
    return held


def _from(times: list[intervals.Interval], begin: int) -> list[intervals.Interval]:
    """Those that end after a time."""
    low, high = 0, len(times)
    while low < high:
        middle = (low + high) // 2
        if times[middle][1] <= begin:
            low = middle + 1
        else:
            high = middle
    return times[low:]
