"""How the sampler may read memory, and what a user is told when that is not the usual way."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from . import _native
from .errors import ProfilerUnavailable

_logger = logging.getLogger(__name__)

_NOT_OURS = "another component keeps SIGSEGV or SIGBUS for itself"
_REPORTS = {
    "syscall": f"{_NOT_OURS}: memory is read by process_vm_readv, which takes many times longer, so that less is seen",
    "none": f"{_NOT_OURS}, and process_vm_readv is refused: nothing is sampled any more",
}


class CopyMethodReport:
    """Says once of each profiler what has become of the usual copy."""

    def __init__(self) -> None:
        self._said = "guarded"
        self._begun = False

    def update(self, method: str, begins: bool = False) -> None:
        """Logs one line when this method of reading is not the one that was said last, once the sampler has begun."""
        self._begun |= begins
        if self._begun and method != self._said and method in _REPORTS:
            _logger.warning("otel_asyncprof: %s", _REPORTS[method])
            self._said = method


@contextmanager
def readable_memory() -> Iterator[None]:
    """Lets the readers be called before a start, or raises ProfilerUnavailable."""
    try:
        _native.begin_self_check()
    except RuntimeError as error:
        raise ProfilerUnavailable(str(error)) from error
    try:
        yield
    finally:
        _native.end_self_check()
