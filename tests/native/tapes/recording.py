"""What a recorded program uses: the extension that writes tapes in place of the real one, known span ids, take()."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import importlib.util
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

_library = os.environ["TAPE_RECORDER"]
_spec = importlib.util.spec_from_file_location("otel_asyncprof._native", _library)
assert _spec is not None
assert _spec.loader is not None
_native = importlib.util.module_from_spec(_spec)
sys.modules["otel_asyncprof._native"] = _native
_spec.loader.exec_module(_native)

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.id_generator import IdGenerator  # noqa: E402
from reader_helpers import await_chain, describe  # noqa: E402

from otel_asyncprof import _anchors, _runtime_context, span_processor  # noqa: E402

# What stands below every coroutine of a program's main().
PREFIX = "<module> > <module> > run > "
TURNS = 40


class CountingIds(IdGenerator):
    """Ids that are the same in each recording."""

    def __init__(self) -> None:
        self._last = 0

    def generate_span_id(self) -> int:
        self._last += 1
        return self._last

    def generate_trace_id(self) -> int:
        return self.generate_span_id() << 64


class NotedNames(SpanProcessor):
    """Remembers which span has which id."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        span_ids[span.name] = f"{span.get_span_context().span_id:016x}"


span_ids: dict[str | None, str] = {None: ""}
provider = TracerProvider(id_generator=CountingIds())
provider.add_span_processor(NotedNames())
tracer = provider.get_tracer("recording")
_held = _anchors.collect()
_native.prepare(anchors=_held)  # type: ignore[attr-defined]


def install_views() -> None:
    """From here on contexts carry views."""
    _runtime_context.install()
    span_processor.ensure_registered(provider)
    _native.prepare(anchors=_held)  # type: ignore[attr-defined]


async def settle() -> None:
    """Lets all other tasks go as far as they can."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def begin_thread(name: str, target: Callable[[], object], last: Any) -> None:
    """Starts a thread and waits until it stands in the body of its last function."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    assert thread.ident
    while True:
        frame = sys._current_frames()[thread.ident]
        if frame.f_code is last.__code__ and frame.f_lineno > frame.f_code.co_firstlineno:
            return
        time.sleep(0.001)


def _take() -> Any:
    """The C function with all its arguments: a call of it makes no Python frame."""
    function = ctypes.PyDLL(_library).tape_record
    function.restype = ctypes.c_char_p
    directory = _anchors.asyncio_directory().encode()
    return functools.partial(function, os.environ["TAPE_FILE"].encode(), directory, ctypes.c_uint64(sys.hexversion))


take = _take()


def shown_frames() -> set[str]:
    """Every frame that Python itself shows, in threads and suspended tasks, as the tape's text has it."""
    frames: set[tuple[str, str, int]] = set()
    for frame in sys._current_frames().values():
        while frame:
            frames.add(describe(frame))
            frame = frame.f_back  # type: ignore[assignment]
    for task in _runtime_context.live_tasks():
        frames.update(await_chain(task.get_coro()))
    return {f"{name}@{file}:{line}" for name, file, line in frames}


def check(lines: list[str], program: Any) -> None:
    """What the readers said is what the program says and what Python shows."""
    stacks: dict[str, set[str]] = {}
    shown = shown_frames() | {"<frames omitted>@:0"}
    for line in lines:
        _, thread, task, link, _, _, _, stack = line.split("|")
        frames = stack.split(" > ")
        assert set(frames) <= shown, set(frames) - shown
        names = " > ".join(frame.split("@")[0].split(".")[-1] for frame in frames)
        stacks.setdefault(task or thread, set()).add(names.replace("__aexit__ > _aexit", "__aexit__"))
        if hasattr(program, "SPANS"):
            assert link == span_ids[program.SPANS[task or thread]], line
    expected = {name: set(stacks) for name, stacks in program.EXPECTED.items()}
    wrong = {name for name in stacks.keys() | expected.keys() if stacks.get(name) != expected.get(name)}
    assert not wrong, {name: (stacks.get(name), expected.get(name)) for name in wrong}


def finish(text: bytes | None) -> None:
    """Checks and prints what take() gave, and ends the process."""
    try:
        assert text is not None
        *samples, _, _ = text.decode().splitlines()
        check(samples, sys.modules["__main__"])
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        if text:
            sys.stderr.write(text.decode())
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
