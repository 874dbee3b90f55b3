"""Collapsed stacks: `root;…;leaf number` a line, for flamegraph.pl, inferno and whatever reads these."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .process_profile import process_profiles
from .stack_sample import Frame, StackSample

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

MODES = ("wall", "cpu")
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # for any of the readers
_SPECIAL = str.maketrans({";": ":"} | dict.fromkeys(_LINE_ENDS, " "))


def value_of(sample: StackSample, mode: str) -> int:
    """Nanoseconds of CPU or wall time."""
    return sample.cpu_ns if mode == "cpu" else sample.wall_ns


def to_collapsed(profiles: "Iterable[ProfilesData]", mode: str = "wall") -> bytes:
    """One line for each stack, the heaviest first; the number is microseconds of wall or CPU time."""
    totals: Counter[tuple[Frame, ...]] = Counter()
    for process in process_profiles(profiles):
        for timed in process.samples:
            totals[timed.sample.frames] += value_of(timed.sample, mode)
    lines = [
        f"{';'.join(map(_text, frames))} {round(total / 1000)}\n" for frames, total in totals.most_common() if total
    ]
    return "".join(lines).encode(errors="replace")


def _text(frame: Frame) -> str:
    """A frame on one line; what the format uses itself is replaced."""
    return f"{frame.function} ({frame.file}:{frame.line})".translate(_SPECIAL)
