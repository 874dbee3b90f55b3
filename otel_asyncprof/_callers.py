"""Who started a slow span: its stitched stack, taken when it starts, and written as attributes if it proves slow."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sysconfig
from collections.abc import Callable, Mapping
from time import time_ns
from types import CodeType
from typing import Any, NamedTuple

import opentelemetry.sdk.trace
import opentelemetry.trace
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import SpanKind

from . import _native
from ._config import ProfilerConfig

_logger = logging.getLogger(__name__)

# Names of OpenTelemetry's semantic conventions, stable since 1.33.
CODE_STACKTRACE = "code.stacktrace"
CODE_FUNCTION_NAME = "code.function.name"
CODE_FILE_PATH = "code.file.path"
CODE_LINE_NUMBER = "code.line.number"
# By which Grafana finds the profile of a span.
PROFILE_ID = "pyroscope.profile.id"

_ASYNCIO = os.path.dirname(asyncio.__file__)
_LOOP_FILES = {
    os.path.join(_ASYNCIO, name)
    for name in ("runners.py", "base_events.py", "selector_events.py", "unix_events.py", "events.py")
}
_UVLOOP_FILE = "/uvloop/__init__.py"
# Frames in files under these are not the application's way to the span: the API, the SDK, instrumentations, we.
_BETWEEN = (
    os.path.dirname(os.path.dirname(opentelemetry.trace.__file__)) + os.sep,
    os.path.dirname(os.path.dirname(opentelemetry.sdk.trace.__file__)) + os.sep,
    os.path.dirname(__file__) + os.sep,
)
# But the demo's application is one like any other.
_DEMO = os.path.join(os.path.dirname(__file__), "demo", "app") + os.sep
_INSTRUMENTATION = "/opentelemetry/instrumentation/"
_STANDARD_LIBRARY = tuple(
    path + os.sep for name in ("stdlib", "platstdlib", "scripts") if (path := sysconfig.get_path(name))
)
_PACKAGE_FOLDERS = ("/site-packages/", "/dist-packages/")


class Frame(NamedTuple):
    """One function on the stack at the line that it executes; file "" and line 0: frames are left out here."""

    function: str
    file: str
    line: int


class _Place(NamedTuple):
    """All that is asked of a frame, kept: slow spans come in crowds, from the same few places."""

    frame: Frame
    text: str  # as traceback.format_stack() has it, but without the source line: reading files may block
    is_between: bool
    is_loop: bool
    is_library: bool


_MAX_PLACES = 4096
_places: dict[tuple[bytes, int, str, str, int], _Place] = {}


class SlowSpans:
    """Takes the caller of each span of some kinds when it starts, and writes it into those that last long enough."""

    def __init__(self, config: ProfilerConfig) -> None:
        self._threshold_ns = int(config.slow_span_threshold * 1e6)
        self._kinds = frozenset(SpanKind[kind.upper()] for kind in config.caller_kinds)
        self._profile_id = config.profile_id
        self._every_span_has_samples = config.link == "span"

    def span_started(self, span: Span) -> None:
        """To be called on the thread that starts the span, with all that led to it still on its stack."""
        context = span.get_span_context()
        if context is None or not context.trace_flags.sampled:
            return
        if self._profile_id and (self._every_span_has_samples or span.parent is None or span.parent.is_remote):
            span.set_attribute(PROFILE_ID, f"{context.span_id:016x}")
        if span.kind in self._kinds:
            stack = _native.caller_stack()
            if stack is not None:
                # Attributes can be set until the span ends, and how long it took is known only then.
                span.__dict__["end"] = self._ending(span, stack)

    def _ending(self, span: Span, stack: _native.CallerStack) -> Callable[..., None]:
        def end(end_time: int | None = None) -> None:
            span.__dict__.pop("end", None)  # also ends the cycle of references
            try:
                start_time = span.start_time
                if start_time is not None and (end_time or time_ns()) - start_time >= self._threshold_ns:
                    span.set_attributes(attributes_of(stack, span.attributes or {}))
            except Exception:
                _logger.debug("the caller of a slow span could not be written", exc_info=True)
            span.end(end_time)

        return end


def frames_of(stack: _native.CallerStack) -> list[Frame]:
    """What a person wants to see of a stack, root first: no loop machinery, and no frames of OpenTelemetry's own."""
    return [place.frame for place in _places_of(stack)]


def attributes_of(stack: _native.CallerStack, present: Mapping[str, Any]) -> dict[str, str | int]:
    """The attributes of a span with this caller, less those that the span has already."""
    places = _places_of(stack)
    attributes: dict[str, str | int] = {}
    if CODE_STACKTRACE not in present:
        attributes[CODE_STACKTRACE] = "".join([place.text for place in places])
    caller = _first_of_application(places)
    # All or none: together they name one place.
    if caller is not None and present.keys().isdisjoint((CODE_FUNCTION_NAME, CODE_FILE_PATH, CODE_LINE_NUMBER)):
        attributes |= {CODE_FUNCTION_NAME: caller.function, CODE_FILE_PATH: caller.file, CODE_LINE_NUMBER: caller.line}
    return attributes


def _places_of(stack: _native.CallerStack) -> list[_Place]:
    n_entry, items = stack[0], iter(stack[1:])
    places: list[_Place] = []
    for code, offset in zip(items, items, strict=True):
        place = _place(code, offset)
        if not (place.is_between or (place.is_loop and n_entry > 0)):
            places.append(place)
        n_entry -= 1
    while places and places[-1].frame.file == contextlib.__file__:  # start_as_current_span() is a context manager
        places.pop()
    return places


def _place(code: CodeType | None, offset: int) -> _Place:
    if code is None:
        text = f"({offset} frames left out)"
        return _Place(Frame(text, "", 0), f"  {text}\n", is_between=False, is_loop=False, is_library=True)
    # By content: code objects come and go, and none is kept. A line table names the lines of all its instructions.
    key = (code.co_linetable, offset, code.co_qualname, code.co_filename, code.co_firstlineno)
    place = _places.get(key)
    if place is None:
        if len(_places) >= _MAX_PLACES:
            _places.clear()
        file = code.co_filename
        frame = Frame(code.co_qualname, file, _line(code, offset))
        is_demo = file.startswith(_DEMO)
        place = _places[key] = _Place(
            frame,
            f'  File "{file}", line {frame.line}, in {frame.function}\n',
            is_between=(file.startswith(_BETWEEN) and not is_demo)
            or _INSTRUMENTATION in file
            or file.endswith(_UVLOOP_FILE),
            is_loop=file in _LOOP_FILES,
            is_library=not is_demo and _is_library(file),
        )
    return place


def _is_library(file: str) -> bool:
    return file.startswith((*_STANDARD_LIBRARY, "<")) or any(folder in file for folder in _PACKAGE_FOLDERS)


def _line(code: CodeType, offset: int) -> int:
    for begin, end, line in code.co_lines():
        if begin <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def _first_of_application(places: list[_Place]) -> Frame | None:
    """The frame nearest to the leaf outside the standard library and installed packages, else the leaf itself."""
    for place in reversed(places):
        if not place.is_library:
            return place.frame
    real = [place.frame for place in places if place.frame.file]
    return real[-1] if real else None
