"""What looks under faults may give: the true samples, or less, marked as such."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

NO_LINK = "0" * 16
UNREADABLE = "<unreadable>"


class Seen(NamedTuple):
    """One sample of one look."""

    weight: int
    thread: str
    task: str
    state: str
    local_root: str
    link: str
    frames: tuple[str, ...]  # root first: function, file, line, first line


def decode(samples: Iterable[list[str]]) -> list[Seen]:
    return [Seen(int(weight), *words, tuple(frames)) for weight, *words, frames in map(split, samples)]  # type: ignore[arg-type]


def split(sample: list[str]) -> list[Any]:
    return [*sample[:6], sample[6:]]


def is_less_of(seen: Seen, true: Seen) -> bool:
    """Whether a sample is a true one, or that with something unread: no link, no name, a frame that is marked."""
    return (
        (seen.thread, seen.state) == (true.thread, true.state)
        and seen.task in (true.task, "")
        and seen.local_root in (true.local_root, "")
        and seen.link in (true.link, NO_LINK)
        and are_frames_of(seen.frames, true.frames)
    )


def are_frames_of(seen: Iterable[str], true: Iterable[str]) -> bool:
    """Whether every frame is the true one at its place, or marked as unreadable."""
    seen, true = tuple(seen), tuple(true)
    return len(seen) == len(true) and all(
        frame == other or frame.startswith(UNREADABLE) for frame, other in zip(seen, true, strict=True)
    )


def untrue(looks: Iterable[list[Any]], exact: list[Seen]) -> list[tuple[int, str, Seen]]:
    """The samples of looks that are no part of the exact one, or weigh more than what they can stand for."""
    found, whole = [], set(exact)
    for number, what, samples in looks:
        for seen in decode(samples):
            if seen not in whole and seen.weight > sum(true.weight for true in exact if is_less_of(seen, true)):
                found.append((number, what, seen))
        if sum(seen.weight for seen in decode(samples)) > sum(true.weight for true in exact):
            found.append((number, f"{what}: more weight than there is", exact[0]))
    return found
