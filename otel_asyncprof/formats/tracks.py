"""Samples laid out in time: for formats that draw what happened when.

With a timeline an observation covers the time from the last look to its own. Without one, what was seen is laid out
from the profile's start, one after the other.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from .process_profile import ProcessProfile, TimedSample
from .stack_sample import StackSample

SEAM_NS = 2_000_000  # two looks that are meant to follow each other do so within this time


@dataclass(frozen=True, slots=True)
class Stretch:
    """A sample over some time."""

    start_ns: int
    end_ns: int
    sample: StackSample


@dataclass(frozen=True, slots=True)
class Track:
    """What one task or thread did: stretches in order that do not overlap."""

    process: ProcessProfile
    name: str
    thread_id: int  # 0 when it is not known
    stretches: list[Stretch]


def tracks_of(process: ProcessProfile, mode: str) -> list[Track]:
    """One track for each task of each thread, and for each thread without a task; a further one for what overlaps."""
    members: dict[tuple[str | None, int | None, str | None], list[TimedSample]] = {}
    for timed in process.samples:
        sample = timed.sample
        members.setdefault((sample.thread_name, sample.thread_id, sample.task_name), []).append(timed)
    tracks = []
    for (thread_name, thread_id, task_name), samples in members.items():
        name = " · ".join(part for part in (thread_name, task_name) if part) or "samples"
        stretches = [stretch for timed in samples for stretch in _stretches(process, timed, mode)]
        if not process.has_timeline:
            stretches = _one_after_the_other(stretches)
        for number, lane in enumerate(_lanes(stretches)):
            tracks.append(Track(process, name if number == 0 else f"{name} ({number + 1})", thread_id or 0, lane))
    return tracks


def _stretches(process: ProcessProfile, timed: TimedSample, mode: str) -> Iterator[Stretch]:
    sample = timed.sample
    if mode == "cpu":
        for time in timed.cpu_at:
            yield Stretch(time - process.period_ns, time, sample)
    elif timed.wall_at:
        for time, value in timed.wall_at:
            yield Stretch(time - value, time, sample)
    elif sample.wall_ns:
        yield Stretch(process.start_ns, process.start_ns + sample.wall_ns, sample)


def _one_after_the_other(stretches: list[Stretch]) -> list[Stretch]:
    laid, position = [], 0
    for stretch in sorted(stretches, key=lambda stretch: stretch.sample.functions):
        position = position or stretch.start_ns
        length = stretch.end_ns - stretch.start_ns
        laid.append(Stretch(position, position + length, stretch.sample))
        position += length
    return laid


def _lanes(stretches: list[Stretch]) -> list[list[Stretch]]:
    """As few lists as possible in each of which nothing overlaps: a task with two awaiters is at two places at once."""
    lanes: list[list[Stretch]] = []
    for stretch in sorted(stretches, key=lambda stretch: (stretch.start_ns, stretch.end_ns)):
        if stretch.end_ns <= stretch.start_ns:
            continue
        free = next((lane for lane in lanes if lane[-1].end_ns <= stretch.start_ns), None)
        if free is None:
            lanes.append([stretch])
        else:
            free.append(stretch)
    return lanes


def follows(before: Stretch, after: Stretch) -> bool:
    """Whether nothing else can have been between two stretches of a track."""
    return after.start_ns - before.end_ns <= SEAM_NS


def merged(stretches: Iterable[Stretch], same: Callable[[StackSample, StackSample], bool]) -> list[Stretch]:
    """Stretches of the same that follow each other become one."""
    found: list[Stretch] = []
    for stretch in stretches:
        if found and follows(found[-1], stretch) and same(found[-1].sample, stretch.sample):
            found[-1] = replace(found[-1], end_ns=stretch.end_ns)
        else:
            found.append(stretch)
    return found
