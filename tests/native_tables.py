"""The pure C files as a shared library, driven through ctypes: what the sampler fills and the export thread encodes."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path

EXT = Path(__file__).parent.parent / "ext"
SOURCES = [
    "drop.c",
    "arena.c",
    "line_table.c",
    "intern_table.c",
    "string_table.c",
    "stack_table.c",
    "protobuf.c",
    "sample_groups.c",
    "otlp_dictionary.c",
    "otlp_encode.c",
]
STATES = {"running": 1, "blocked": 2, "waiting": 3, "ready": 4}
THREAD_NAME, STATE, THREAD_ID, TASK_NAME, LOCAL_ROOT_NAME = 1, 2, 4, 8, 16

EMIT = ctypes.CFUNCTYPE(c_bool, c_void_p, POINTER(c_uint8), c_size_t)
RANDOM = ctypes.CFUNCTYPE(None, POINTER(c_uint8), c_size_t)


class CFunction(ctypes.Structure):
    """struct function"""

    _fields_ = [("name", c_uint32), ("filename", c_uint32), ("first_line", c_uint32)]


class CLocation(ctypes.Structure):
    """struct location"""

    _fields_ = [("function", c_uint32), ("line", c_uint32)]


class CLink(ctypes.Structure):
    """struct link"""

    _fields_ = [("trace_id", c_uint8 * 16), ("span_id", c_uint8 * 8)]


class CSampleKey(ctypes.Structure):
    """struct sample_key"""

    _fields_ = [
        *((name, c_uint32) for name in ("stack", "link", "thread_name", "task_name", "local_root_name", "state")),
        ("thread_id", c_uint64),
    ]


class CObservation(ctypes.Structure):
    """struct observation"""

    _fields_ = [
        *((name, c_uint64) for name in ("wall_ns", "cpu_periods", "period_ns", "time_unix_ns", "not_before_unix_ns")),
        ("with_event", c_bool),
    ]


class COptions(ctypes.Structure):
    """struct otlp_options"""

    _fields_ = [
        ("resource", c_char_p),
        ("resource_size", c_size_t),
        ("resource_schema_url", c_char_p),
        ("scope_version", c_char_p),
        ("time_unix_nano", c_uint64),
        ("duration_nano", c_uint64),
        ("period_ns", c_uint64),
        ("attributes", c_uint32),
        ("timeline", c_bool),
        ("random_bytes", RANDOM),
    ]


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="native_tables_")


@functools.cache
def library() -> ctypes.CDLL:
    """Compiles the library, once per test run."""
    target = Path(_folder().name) / "tables.so"
    sources = [*(EXT / name for name in SOURCES), Path(__file__).parent / "native" / "find_lines.c"]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{EXT}"]
    subprocess.run(["gcc", *flags, "-o", str(target), *map(str, sources)], check=True)
    loaded = ctypes.CDLL(str(target))
    signatures: dict[str, tuple[list[type], type | None]] = {
        "line_table_find": ([c_char_p, c_size_t, c_int, c_int], c_int),
        "find_lines": ([c_char_p, c_size_t, c_int, POINTER(c_int), c_int, c_int], None),
        "stack_table_new": ([c_size_t], c_void_p),
        "stack_table_destroy": ([c_void_p], None),
        "stack_table_string": ([c_void_p, c_char_p, c_size_t], c_uint32),
        "stack_table_function": ([c_void_p, CFunction], c_uint32),
        "stack_table_location": ([c_void_p, CLocation], c_uint32),
        "stack_table_link": ([c_void_p, POINTER(CLink)], c_uint32),
        "stack_table_push": ([c_void_p, c_uint32, c_uint32], c_uint32),
        "stack_table_add": ([c_void_p, POINTER(CSampleKey), POINTER(CObservation)], None),
        "otlp_encode": ([c_void_p, POINTER(COptions), EMIT, c_void_p], c_bool),
    }
    for name, (arguments, result) in signatures.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, result
    return loaded


@dataclass(frozen=True)
class Frame:
    """One frame of a stack."""

    name: str
    filename: str = "app.py"
    line: int = 1
    first_line: int = 1


class StackTable:
    """A stack table of the C core."""

    def __init__(self, max_bytes: int = 1 << 30) -> None:
        self._library = library()
        self.pointer = self._library.stack_table_new(max_bytes)
        assert self.pointer
        self._locations: dict[Frame, int] = {}

    def __del__(self) -> None:
        self._library.stack_table_destroy(self.pointer)

    def string(self, text: str) -> int:
        """The id of a string."""
        encoded = text.encode()
        return int(self._library.stack_table_string(self.pointer, encoded, len(encoded)))

    def location(self, frame: Frame) -> int:
        """The id of a location."""
        if frame not in self._locations:
            function = CFunction(self.string(frame.name), self.string(frame.filename), frame.first_line)
            location = CLocation(self._library.stack_table_function(self.pointer, function), frame.line)
            self._locations[frame] = self._library.stack_table_location(self.pointer, location)
        return self._locations[frame]

    def stack(self, frames: Sequence[Frame], parent: int = 0) -> int:
        """The id of a stack, root first, on top of another one."""
        for frame in frames:
            parent = self._library.stack_table_push(self.pointer, parent, self.location(frame))
        return parent

    def link(self, trace_id: bytes, span_id: bytes) -> int:
        """The id of a link."""
        link = CLink((c_uint8 * 16)(*trace_id), (c_uint8 * 8)(*span_id))
        return int(self._library.stack_table_link(self.pointer, ctypes.byref(link)))

    def add(
        self,
        frames: Sequence[Frame],
        *,
        parent: int = 0,
        link: tuple[bytes, bytes] | None = None,
        thread_name: str = "",
        task_name: str = "",
        local_root_name: str = "",
        state: str = "",
        thread_id: int = 0,
        wall_ns: int = 0,
        cpu_periods: int = 0,
        period_ns: int = 0,
        time: int = 0,
        with_event: bool = False,
    ) -> None:
        """Adds one observation of a stack."""
        key = CSampleKey(
            self.stack(frames, parent),
            self.link(*link) if link else 0,
            self.string(thread_name),
            self.string(task_name),
            self.string(local_root_name),
            STATES.get(state, 0),
            thread_id,
        )
        seen = CObservation(wall_ns, cpu_periods, period_ns, time, 0, with_event)
        self._library.stack_table_add(self.pointer, ctypes.byref(key), ctypes.byref(seen))

    def encode(
        self,
        *,
        resource: bytes = b"",
        time: int = 1_000_000_000,
        duration: int = 10_000_000_000,
        period_ns: int = 10_000_000,
        attributes: int = THREAD_NAME | STATE,
        timeline: bool = False,
        random: Callable[[int], bytes],
        accept: Callable[[bytes], bool] = lambda _: True,
    ) -> list[bytes]:
        """The requests that the encoder emits."""
        requests: list[bytes] = []

        def emit(_: int, data: ctypes._Pointer[c_uint8], size: int) -> bool:
            requests.append(ctypes.string_at(data, size))
            return accept(requests[-1])

        def fill(data: ctypes._Pointer[c_uint8], size: int) -> None:
            ctypes.memmove(data, random(size), size)

        schema = b"https://opentelemetry.io/schemas/1.44.0"
        options = COptions(
            *(resource, len(resource), schema, b"1.2.3", time, duration, period_ns, attributes, timeline, RANDOM(fill))
        )
        assert self._library.otlp_encode(self.pointer, ctypes.byref(options), EMIT(emit), None) == all(
            map(accept, requests)
        )
        return requests
