"""Chrome's Trace Event Format, for Perfetto and chrome://tracing: frames as nested slices on a track for each task.

The innermost slice is the state, and has everything that is known of the sample as its arguments.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .pprof import labels_of
from .process_profile import process_profiles
from .stack_sample import Frame
from .tracks import Stretch, Track, follows, merged, tracks_of

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

_Event = dict[str, Any]


def to_chrome(profiles: "Iterable[ProfilesData]", mode: str = "wall") -> bytes:
    """One trace of all processes; times are microseconds."""
    processes = process_profiles(profiles)
    events: list[_Event] = []
    for number, process in enumerate(processes):
        pid = process.pid or number + 1
        events.append(_metadata("process_name", pid, 0, process.name))
        for tid, track in enumerate(tracks_of(process, mode), start=1):
            events.append(_metadata("thread_name", pid, tid, track.name))
            events += _slices(track, pid, tid)
    document = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"exporter": "otel-asyncprof", "time": mode},
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _metadata(name: str, pid: int, tid: int, value: str) -> _Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": {"name": value}}


def _slices(track: Track, pid: int, tid: int) -> list[_Event]:
    """Neighbouring stretches share the slices of the frames that they have in common; outer slices come first."""
    placed: list[tuple[int, int, int, _Event]] = []  # start, end negated, depth: the order in which viewers nest them
    open_frames: list[tuple[Frame, int]] = []  # with the start of each

    def place(depth: int, start_ns: int, end_ns: int, name: str, category: str, arguments: dict[str, Any]) -> None:
        # Whole microseconds: rounded fractions would make slices overlap that lie one inside the other.
        times = {"ts": start_ns // 1000, "dur": end_ns // 1000 - start_ns // 1000}
        event = {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, **times, "args": arguments}
        placed.append((start_ns, -end_ns, depth, event))

    def close(kept: int, end_ns: int) -> None:
        while len(open_frames) > kept:
            frame, start_ns = open_frames.pop()
            arguments = {"file": frame.file, "line": frame.line, "first_line": frame.first_line}
            place(len(open_frames), start_ns, end_ns, frame.function, "frame", arguments)

    last: Stretch | None = None
    for stretch in merged(track.stretches, lambda one, other: one is other):
        frames = stretch.sample.frames
        if last is not None:
            close(_n_shared(open_frames, frames) if follows(last, stretch) else 0, last.end_ns)
        open_frames += [(frame, stretch.start_ns) for frame in frames[len(open_frames) :]]
        labels = labels_of(track.process, stretch.sample)
        place(len(frames), stretch.start_ns, stretch.end_ns, stretch.sample.state or "seen", "state", labels)
        last = stretch
    if last is not None:
        close(0, last.end_ns)
    return [event for _, _, _, event in sorted(placed, key=lambda item: item[:3])]


def _n_shared(open_frames: list[tuple[Frame, int]], frames: tuple[Frame, ...]) -> int:
    for number, ((frame, _), other) in enumerate(zip(open_frames, frames, strict=False)):
        if frame != other:
            return number
    return min(len(open_frames), len(frames))
