"""Which frames are the application's own, judged by what a recording holds: it may come from another machine."""

import re
from collections.abc import Iterable

from ..formats.stack_sample import Frame

_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib(64)?/python3\.\d+t?/|^<|^$")


def is_library(file: str) -> bool:
    """Whether a file belongs to the standard library, to an installed package or to no file at all."""
    return _LIBRARY.search(file) is not None


def caller_in(frames: Iterable[Frame]) -> Frame | None:
    """Of a stack, root first, the application's frame nearest to the leaf; the leaf when the application has none."""
    stack = list(frames)
    for frame in reversed(stack):
        if not is_library(frame.file):
            return frame
    return stack[-1] if stack else None
