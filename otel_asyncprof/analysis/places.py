"""Which frames are the application's own, judged by what a recording holds: it may come from another machine."""

import re
from collections.abc import Iterable
from functools import lru_cache

from ..formats.stack_sample import Frame

OWN, INSTALLED, STANDARD, NONE = KINDS = ("own", "installed", "standard", "none")

# The demo's application is one like any other, wherever it is installed; scripts in bin/ only start something.
_INSTALLED = re.compile(r"/(site|dist)-packages/(?!otel_asyncprof/demo/app/)|/bin/[^/]+(?<!\.py)$")
_STANDARD = re.compile(r"/lib(64)?/python3\.\d+t?/(?!site-packages|dist-packages)")


@lru_cache(maxsize=4096)
def kind_of(file: str) -> str:
    """Whose code a file is; none for what is no file, such as <frozen importlib>."""
    if not file or file.startswith("<"):
        return NONE
    if _INSTALLED.search(file):
        return INSTALLED
    return STANDARD if _STANDARD.search(file) else OWN


def is_library(file: str) -> bool:
    """Whether a file belongs to the standard library, to an installed package or to no file at all."""
    return kind_of(file) != OWN


def caller_in(frames: Iterable[Frame]) -> Frame | None:
    """Of a stack, root first, the application's frame nearest to the leaf; the leaf when the application has none."""
    stack = list(frames)
    for frame in reversed(stack):
        if not is_library(frame.file):
            return frame
    return stack[-1] if stack else None
