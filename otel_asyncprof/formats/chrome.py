"""Chrome's Trace Event Format, for Perfetto and chrome://tracing: frames as nested slices on a track for each task.

The innermost slice is the state, and has everything that is known of the sample as its arguments.
"""

import json
from collections.abc import Iterable, Iterator
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


def _slices(track: Track, pid: int, tid: int) -> Iterator[_Event]:
    """Neighbouring stretches share the slices of the frames that they have in common."""
    open_frames: list[tuple[Frame, int]] = []  # with the start of each
    last: Stretch | None = None
    for stretch in merged(track.stretches, lambda one, other: one is other):
        frames = stretch.sample.frames
        if last is not None:
            shared = _n_shared(open_frames, frames) if follows(last, stretch) else 0
            yield from _closed(open_frames, shared, last.end_ns, pid, tid)
        open_frames += [(frame, stretch.start_ns) for frame in frames[len(open_frames) :]]
        yield _leaf(track, stretch, pid, tid)
        last = stretch
    if last is not None:
        yield from _closed(open_frames, 0, last.end_ns, pid, tid)


def _n_shared(open_frames: list[tuple[Frame, int]], frames: tuple[Frame, ...]) -> int:
    for number, ((frame, _), other) in enumerate(zip(open_frames, frames, strict=False)):
        if frame != other:
            return number
    return min(len(open_frames), len(frames))


def _closed(open_frames: list[tuple[Frame, int]], kept: int, end_ns: int, pid: int, tid: int) -> Iterator[_Event]:
    while len(open_frames) > kept:
        frame, start_ns = open_frames.pop()
        arguments = {"file": frame.file, "line": frame.line, "first_line": frame.first_line}
        yield _slice(frame.function, "frame", start_ns, end_ns, pid, tid, arguments)


def _leaf(track: Track, stretch: Stretch, pid: int, tid: int) -> _Event:
    state = stretch.sample.state or "seen"
    return _slice(state, "state", stretch.start_ns, stretch.end_ns, pid, tid, labels_of(track.process, stretch.sample))


def _slice(
    name: str, category: str, start_ns: int, end_ns: int, pid: int, tid: int, arguments: dict[str, Any]
) -> _Event:
    times = {"ts": start_ns / 1000, "dur": (end_ns - start_ns) / 1000}
    return {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, **times, "args": arguments}
