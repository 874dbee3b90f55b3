"""What values an option may have, and how the text of a variable becomes such a value."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_logger = logging.getLogger(__name__)

_TRUE = {"true", "1", "yes", "on"}
_FALSE = {"false", "0", "no", "off"}
_UNIT_IN_SECONDS = {"ms": 0.001, "s": 1.0}


@dataclass(frozen=True)
class Option:
    """A variable, the function that reads its text or a value from code (else ValueError), and what is allowed."""

    variable: str
    parse: Callable[[object], object]
    allowed: str
    read_by_exporter: bool = False  # which knows further variables to fall back on; until then the option is None
    secret: bool = False  # what may hold a secret is not told

    def refusal(self, name: str, value: object) -> str:
        """What is wrong with the value under this name."""
        shown = name if self.secret else f"{name}={value!r}"
        return f"{shown} is not allowed (allowed: {self.allowed})"


def boolean(value: object) -> bool:
    """A bool, or its text in any of the usual spellings."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(value)


def integer(low: int, high: int) -> Callable[[object], int]:
    """A whole number from low to high."""

    def parse(value: object) -> int:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError(value)
        number = int(value) if isinstance(value, (int, float)) else int(str(value).strip())
        if not low <= number <= high:
            raise ValueError(value)
        return number

    return parse


def number(low: float, high: float) -> Callable[[object], float]:
    """A number from low to high; neither infinity nor NaN."""

    def parse(value: object) -> float:
        if isinstance(value, bool):
            raise ValueError(value)
        result = float(value) if isinstance(value, (int, float)) else float(str(value).strip())
        if not low <= result <= high:
            raise ValueError(value)
        return result

    return parse


def duration(unit: str, low: float, high: float) -> Callable[[object], float]:
    """A number of units ("s" or "ms") from low to high; text may carry its own unit."""
    check = number(low, high)

    def parse(value: object) -> float:
        if isinstance(value, str):
            text = value.strip().lower()
            for suffix in ("ms", "s"):
                if text.endswith(suffix):
                    seconds = float(text.removesuffix(suffix)) * _UNIT_IN_SECONDS[suffix]
                    return check(round(seconds / _UNIT_IN_SECONDS[unit], 9))
        return check(value)

    return parse


def choice(*names: str) -> Callable[[object], str]:
    """One of the names, in any case."""

    def parse(value: object) -> str:
        text = str(value).strip().lower()
        if text not in names:
            raise ValueError(value)
        return text

    return parse


def choices(*names: str) -> Callable[[object], tuple[str, ...]]:
    """Some of the names: text with commas, or a sequence; each once, in the order of the names."""

    def parse(value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            parts = value.split(",")
        elif isinstance(value, Iterable):
            parts = [str(part) for part in value]
        else:
            raise ValueError(value)
        chosen = {part.strip().lower() for part in parts if part.strip()}
        if chosen - set(names):
            raise ValueError(value)
        return tuple(name for name in names if name in chosen)

    return parse


def text(value: object) -> str:
    """Any text that is not empty."""
    result = str(value).strip()
    if not result:
        raise ValueError(value)
    return result


def read_variable(option: Option, environ: Mapping[str, str], *fallbacks: str) -> object:
    """The value of the first of the variables that is set; None when none is, and after a warning when it is bad."""
    for variable in (option.variable, *fallbacks):
        raw = environ.get(variable, "").strip()
        if not raw:
            continue
        try:
            return option.parse(raw)
        except (ValueError, OverflowError):
            _logger.warning("%s=%r is not allowed (allowed: %s); the default is used", variable, raw, option.allowed)
            return None
    return None
