"""What stands behind the question mark -> what is asked for; a bad value is an error with a sentence."""

import re
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams

from .compare_answers import identifier
from .flame import PRUNE
from .list_answers import SORTS as TRACE_SORTS
from .list_answers import TraceFilter
from .looks import STATES
from .query_answers import SORTS as QUERY_SORTS
from .query_sums import QueryFilter
from .selection import ALL, ELAPSED, PARTS, SCOPES, SELF, WEIGHTS, Choice
from .stack_answers import View

MAX_ROWS = 10_000
MAX_US = 1 << 52
MAX_TEXT = 2000
_WHOLE = re.compile(r"-?\d{1,18}")


class BadParameter(ValueError):
    """A value that means nothing."""


@dataclass(frozen=True)
class Parameters:
    """Reads single values."""

    query: QueryParams

    def text(self, name: str) -> str | None:
        """A text; None when it is not given or empty."""
        value = self.query.get(name)
        if value is not None and len(value) > MAX_TEXT:
            raise BadParameter(f"{name} is too long")
        return value or None

    def whole(self, name: str, least: int = 0, most: int = MAX_US) -> int | None:
        """A whole number."""
        value = self.query.get(name)
        if not value:
            return None
        if not _WHOLE.fullmatch(value) or not least <= int(value) <= most:
            raise BadParameter(f"{name} has to be a whole number from {least} to {most}")
        return int(value)

    def micros(self, name: str) -> int | None:
        """A time or duration in microseconds, as nanoseconds."""
        value = self.whole(name)
        return None if value is None else value * 1000

    def choice(self, name: str, among: Any, default: str) -> str:
        """One of some words."""
        value = self.query.get(name) or default
        if value not in among:
            raise BadParameter(f"{name} has to be one of {', '.join(among)}")
        return value

    def identifier(self, name: str, size: int) -> bytes | None:
        """An id of so many bytes."""
        value = self.query.get(name)
        return None if not value else read_identifier(name, value, size)


def read_identifier(name: str, value: str, size: int) -> bytes:
    """An id of so many bytes; BadParameter when it is none."""
    try:
        return identifier(value, size)
    except ValueError:
        raise BadParameter(f"{name} has to have {2 * size} hexadecimal digits") from None


def trace_filter(query: QueryParams) -> TraceFilter:
    """Which traces are listed."""
    given = Parameters(query)
    attributes = []
    for pair in query.getlist("attribute"):
        key, colon, value = pair.partition(":")
        if not colon or not key:
            raise BadParameter("attribute has to be key:value")
        attributes.append((key, value))
    return TraceFilter(
        service=given.text("service"),
        operation=given.text("operation"),
        text=given.text("text") or "",
        min_ns=given.micros("min_us"),
        max_ns=given.micros("max_us"),
        since_ns=given.micros("since_us"),
        until_ns=given.micros("until_us"),
        errors_only=given.choice("error", ("0", "1"), "0") == "1",
        attributes=tuple(attributes[:10]),
        function=given.text("function") or "",
        file=given.text("file"),
        query=given.whole("query"),
        sort=given.choice("sort", TRACE_SORTS, "-duration"),
        limit=_or(given.whole("limit", 1, MAX_ROWS), 100),
        offset=_or(given.whole("offset"), 0),
    )


def query_filter(query: QueryParams, number: int | None = None) -> QueryFilter:
    """Which runs of statements are meant."""
    given = Parameters(query)
    return QueryFilter(
        query=number,
        service=given.text("service"),
        operation=given.text("operation"),
        text=given.text("text") or "",
        since_ns=_or(given.micros("since_us"), 0),
        until_ns=_or(given.micros("until_us"), QueryFilter.until_ns),
        sort=given.choice("sort", QUERY_SORTS, "-total"),
        limit=_or(given.whole("limit", 1, MAX_ROWS), 100),
    )


def stack_choice(query: QueryParams) -> Choice:
    """Which samples are meant."""
    given = Parameters(query)
    operation = given.text("operation")
    service, slash, name = (operation or "").partition("/")
    if operation and not slash:
        raise BadParameter("operation has to be service/name")
    states = frozenset((given.text("state") or ",".join(STATES)).split(","))
    if not states <= set(STATES):
        raise BadParameter(f"state has to be some of {', '.join(STATES)}")
    trace, span = given.identifier("trace", 16), given.identifier("span", 8)
    if span is not None and trace is None:
        raise BadParameter("span needs trace")
    return Choice(
        trace=trace,
        span=span,
        scope=given.choice("scope", SCOPES, SELF),
        operation=(service, name) if operation else None,
        at=given.choice("at", PARTS, ALL),
        query=given.whole("query"),
        service=given.text("service"),
        since_ns=_or(given.micros("since_us"), 0),
        until_ns=_or(given.micros("until_us"), Choice.until_ns),
        states=states,
        from_ns=given.micros("from_us"),
        to_ns=given.micros("to_us"),
        task=given.text("task"),
        weight=given.choice("weight", WEIGHTS, ELAPSED),
    )


def stack_view(query: QueryParams) -> View:
    """How stacks are shown."""
    given = Parameters(query)
    try:
        prune = float(query.get("prune") or PRUNE)
    except ValueError:
        prune = -1.0
    if not 0 <= prune <= 1:
        raise BadParameter("prune has to be a share from 0 to 1")
    return View(
        by_line=given.choice("by", ("function", "line"), "function") == "line",
        inverted=given.choice("invert", ("0", "1"), "0") == "1",
        find=given.text("find") or "",
        focus=given.text("focus") or "",
        hide=given.text("hide") or "",
        libraries=given.choice("library", ("0", "1"), "1") == "1",
        recursion=given.choice("recursion", ("0", "1"), "1") == "1",
        prune=prune,
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
