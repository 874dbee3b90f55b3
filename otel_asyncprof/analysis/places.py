"""Which frames are the application's own, judged by what a recording holds: it may come from another machine."""

import re
from collections.abc import Iterable
from functools import lru_cache

from ..formats.stack_sample import Frame

OWN, INSTALLED, STANDARD, NONE = KINDS = ("own", "installed", "standard", "none")

_INSTALLED = re.compile(r"/(site|dist)-packages/")
_ENTRY_SCRIPT = re.compile(r"/bin/[^/.]+$")  # what pip makes of entry points: the way into a package
_DEMO_APPLICATION = "/otel_asyncprof/demo/app/"  # somebody's program, wherever it lies
_STANDARD = re.compile(r"/lib(64)?/python3\.\d+t?/")


@lru_cache(maxsize=4096)
def kind_of(file: str) -> str:
    """Whose code a file is; none for what is no file, such as <frozen importlib>."""
    if not file or file.startswith("<"):
        return NONE
    if _DEMO_APPLICATION in file:
        return OWN
    if _INSTALLED.search(file) or _ENTRY_SCRIPT.search(file):
        return INSTALLED
    return STANDARD if _STANDARD.search(file) else OWN


def is_library(file: str) -> bool:
    """Whether a file belongs to the standard library, to an installed package or to no file at all."""
    return kind_of(file) != OWN


def caller_in(frames: Iterable[Frame]) -> Frame | None:
    """Of a stack, root first, the application's frame nearest to the leaf; else that of a package, if any."""
    stack = list(frames)
    for wanted in (OWN, INSTALLED):
        for frame in reversed(stack):
            if kind_of(frame.file) == wanted:
                return frame
    return None
