"""The query string of an endpoint may be a secret, and urllib3 writes it into its log."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGERS = ("urllib3.connectionpool", "urllib3.util.retry")


class _WithoutQuery(logging.Filter):
    """Cuts off, at the question mark, what the thread that made it logs. Lets everything pass."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        if threading.get_ident() == self._thread and isinstance(record.args, tuple):
            record.args = tuple(_cut(argument) for argument in record.args)
        return True


def _cut(argument: object) -> object:
    if isinstance(argument, int) or "?" not in str(argument):
        return argument
    return str(argument).partition("?")[0] if isinstance(argument, str) else type(argument).__name__


@contextmanager
def without_query_in_logs() -> Iterator[None]:
    """While the block runs, what urllib3 logs of the calling thread's requests holds no query string."""
    cutter = _WithoutQuery()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(cutter)
    try:
        yield
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(cutter)
