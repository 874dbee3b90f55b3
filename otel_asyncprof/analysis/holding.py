"""How long a task has held its event loop in one go, as far as looks can tell."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..formats.process_profile import ProcessProfile
from ..formats.stack_sample import Frame, StackSample

_HAS_THE_LOOP = ("running", "blocked")
# Between two looks no more may pass than this, or nothing is known about the time between them.
_MAX_MISSED_LOOKS = 3
_MAX_LATENESS_NS = 20_000_000  # of looks on a busy machine


@dataclass(frozen=True)
class Hold:
    """A task was seen to have the loop at every look from the first to the last."""

    task_name: str
    first_ns: int
    last_ns: int
    frames: tuple[Frame, ...]  # of the last look

    @property
    def least_ns(self) -> int:
        """It held the loop at least so long: what was before the first look and after the last is not counted."""
        return self.last_ns - self.first_ns


@dataclass(frozen=True)
class _Look:
    """What a thread did at one time."""

    time_ns: int
    sample: StackSample


def longest_hold(processes: Iterable[ProcessProfile], period_ns: int) -> Hold | None:
    """The longest one; None when no task was seen to have a loop. Needs the timeline, and the names of tasks.

    A task that gives the loop away and gets it back before the next look, since nothing else is to be done, looks like
    one that keeps it.
    """
    holds = [hold for process in processes for looks in _threads(process).values() for hold in _holds(looks, period_ns)]
    return max(holds, key=lambda hold: hold.least_ns, default=None)


def _threads(process: ProcessProfile) -> dict[tuple[int | None, str | None], list[_Look]]:
    """The looks at what each thread itself did: a task that has the loop, or anything without a task."""
    threads: dict[tuple[int | None, str | None], list[_Look]] = {}
    for timed in process.samples:
        sample = timed.sample
        if sample.state in _HAS_THE_LOOP or sample.task_name is None:
            looks = threads.setdefault((sample.thread_id, sample.thread_name), [])
            looks += [_Look(time, sample) for time, _ in timed.wall_at]
    return threads


def _holds(looks: list[_Look], period_ns: int) -> list[Hold]:
    holds: list[Hold] = []
    current: Hold | None = None
    longest_gap = _MAX_MISSED_LOOKS * period_ns + _MAX_LATENESS_NS
    for look in sorted(looks, key=lambda look: look.time_ns):
        name = look.sample.task_name
        if current and name == current.task_name and look.time_ns - current.last_ns <= longest_gap:
            current = Hold(name, current.first_ns, look.time_ns, look.sample.frames)
            holds[-1] = current
        elif name is not None:
            current = Hold(name, look.time_ns, look.time_ns, look.sample.frames)
            holds.append(current)
        else:
            current = None
    return holds
