"""Firefox Profiler's processed format: a thread for each task, states as categories, links as markers."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .process_profile import ProcessProfile, process_profiles
from .stack_sample import Frame, StackSample
from .tracks import Stretch, Track, merged, tracks_of

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

FORMAT_VERSION = 58  # of the processed format; Firefox Profiler upgrades older ones
_GECKO_VERSION = 31
_INTERVAL_MARKER = 1
CATEGORIES = (
    ("Other", "grey"),
    ("running", "green"),
    ("waiting", "transparent"),
    ("ready", "yellow"),
    ("blocked", "red"),
)
_LINK = "Link"
_LINK_SCHEMA = {
    "name": _LINK,
    "tooltipLabel": "Span {marker.data.span_id}",
    "tableLabel": "trace {marker.data.trace_id} span {marker.data.span_id}",
    "chartLabel": "{marker.data.span_id}",
    "display": ["marker-chart", "marker-table"],
    "fields": [
        {"key": "trace_id", "label": "Trace", "format": "unique-string"},
        {"key": "span_id", "label": "Span", "format": "unique-string"},
    ],
}


def to_gecko(profiles: "Iterable[ProfilesData]", mode: str = "wall") -> bytes:
    """One profile of all processes; times are milliseconds since its start."""
    processes = process_profiles(profiles)
    shared = _Shared()
    tracks = [track for process in processes for track in tracks_of(process, mode)]
    start_ns = min((track.stretches[0].start_ns for track in tracks), default=0)
    end_ns = max((track.stretches[-1].end_ns for track in tracks), default=0)
    threads = [_Thread(shared, track, start_ns).finished(number) for number, track in enumerate(tracks)]
    period = processes[0].period_ns if processes else 0
    document = {
        "meta": _meta(processes, start_ns, end_ns, period),
        "libs": [],
        "threads": threads,
        "shared": shared.finished(),
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _meta(processes: list[ProcessProfile], start_ns: int, end_ns: int, period_ns: int) -> dict[str, Any]:
    return {
        "interval": period_ns / 1e6,
        "startTime": start_ns / 1e6,
        "profilingStartTime": 0,
        "profilingEndTime": (end_ns - start_ns) / 1e6,
        "processType": 0,
        "product": ", ".join(process.name for process in processes) or "empty",
        "stackwalk": 1,
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": FORMAT_VERSION,
        "symbolicated": True,
        "symbolicationNotSupported": True,
        "usesOnlyOneStackType": True,
        "sourceCodeIsNotOnSearchfox": True,
        "keepProfileThreadOrder": True,
        "importedFrom": "otel-asyncprof",
        "categories": [{"name": name, "color": color, "subcategories": ["Other"]} for name, color in CATEGORIES],
        "markerSchema": [_LINK_SCHEMA],
    }


class _Shared:
    """Strings and files, common to all threads."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        self._sources: dict[str, int] = {}

    def string(self, text: str) -> int:
        """The string's number."""
        return self._strings.setdefault(text, len(self._strings))

    def source(self, file: str) -> int:
        """The file's number."""
        return self._sources.setdefault(file, len(self._sources))

    def finished(self) -> dict[str, Any]:
        """The tables."""
        files = [self.string(file) for file in self._sources]
        sources = {"length": len(files), "uuid": [None] * len(files), "filename": files}
        return {"stringArray": list(self._strings), "sources": sources}


class _Thread:
    """One track with its tables."""

    def __init__(self, shared: _Shared, track: Track, start_ns: int) -> None:
        self._shared = shared
        self._track = track
        self._start_ns = start_ns
        self._functions: dict[tuple[str, str, int], int] = {}
        self._frames: dict[tuple[int, int, int | None], int] = {}  # function, line, category
        self._stacks: dict[tuple[int | None, int], int] = {}  # prefix, frame

    def finished(self, number: int) -> dict[str, Any]:
        """The thread as the format has it."""
        process, stretches = self._track.process, self._track.stretches
        samples = {
            "stack": [self._stack(stretch.sample) for stretch in stretches],
            "time": [self._time(stretch.start_ns) for stretch in stretches],
            "weight": [(stretch.end_ns - stretch.start_ns) / 1e6 for stretch in stretches],
            "weightType": "tracing-ms",
            "length": len(stretches),
        }
        return {
            "processType": "default",
            "processName": process.name,
            "processStartupTime": 0,
            "processShutdownTime": None,
            "registerTime": 0,
            "unregisterTime": None,
            "pausedRanges": [],
            "name": self._track.name,
            "isMainThread": False,
            "showMarkersInTimeline": True,
            "pid": str(process.pid or process.name),
            "tid": number + 1,
            "samples": samples,
            "markers": self._markers(),
            "stackTable": self._stack_table(),
            "frameTable": self._frame_table(),
            "funcTable": self._function_table(),
            "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
            "nativeSymbols": {"length": 0, "libIndex": [], "address": [], "name": [], "functionSize": []},
        }

    def _time(self, time_ns: int) -> float:
        return (time_ns - self._start_ns) / 1e6

    def _stack(self, sample: StackSample) -> int | None:
        stack: int | None = None
        for depth, frame in enumerate(sample.frames, start=1):
            category = _category(sample) if depth == len(sample.frames) else None
            key = (stack, self._frame(frame, category))
            stack = self._stacks.setdefault(key, len(self._stacks))
        return stack

    def _frame(self, frame: Frame, category: int | None) -> int:
        function = (frame.function, frame.file, frame.first_line)
        number = self._functions.setdefault(function, len(self._functions))
        return self._frames.setdefault((number, frame.line, category), len(self._frames))

    def _stack_table(self) -> dict[str, Any]:
        return {
            "frame": [frame for _, frame in self._stacks],
            "prefix": [prefix for prefix, _ in self._stacks],
            "length": len(self._stacks),
        }

    def _frame_table(self) -> dict[str, Any]:
        n = len(self._frames)
        categories = [category for _, _, category in self._frames]
        return {
            "address": [-1] * n,
            "inlineDepth": [0] * n,
            "category": categories,
            "subcategory": [None if category is None else 0 for category in categories],
            "func": [function for function, _, _ in self._frames],
            "nativeSymbol": [None] * n,
            "innerWindowID": [0] * n,
            "line": [line or None for _, line, _ in self._frames],
            "column": [None] * n,
            "length": n,
        }

    def _function_table(self) -> dict[str, Any]:
        n = len(self._functions)
        return {
            "name": [self._shared.string(name) for name, _, _ in self._functions],
            "isJS": [False] * n,
            "relevantForJS": [False] * n,
            "resource": [-1] * n,
            "source": [self._shared.source(file) if file else None for _, file, _ in self._functions],
            "lineNumber": [first_line or None for _, _, first_line in self._functions],
            "columnNumber": [None] * n,
            "length": n,
        }

    def _markers(self) -> dict[str, Any]:
        links = _linked(self._track.stretches)
        return {
            "data": [
                {
                    "type": _LINK,
                    "trace_id": self._shared.string(format(link.sample.trace_id, "032x")),
                    "span_id": self._shared.string(format(link.sample.span_id, "016x")),
                }
                for link in links
            ],
            "name": [self._shared.string(_LINK)] * len(links),
            "startTime": [self._time(link.start_ns) for link in links],
            "endTime": [self._time(link.end_ns) for link in links],
            "phase": [_INTERVAL_MARKER] * len(links),
            "category": [0] * len(links),
            "length": len(links),
        }


def _category(sample: StackSample) -> int:
    names = [name for name, _ in CATEGORIES]
    return names.index(sample.state) if sample.state in names else 0


def _linked(stretches: list[Stretch]) -> list[Stretch]:
    """Stretches that have a link; those of the same link that follow each other become one."""
    return merged((stretch for stretch in stretches if stretch.sample.span_id), _have_same_link)


def _have_same_link(one: StackSample, other: StackSample) -> bool:
    return (one.trace_id, one.span_id) == (other.trace_id, other.span_id)
