"""What the commands say: words on stderr, results on stdout, and one clear line when something is wrong."""

import os
import sys
from collections.abc import Iterable
from typing import TextIO

PROGRAM = "otel-asyncprof"

# Exit statuses.
REGRESSION = NOTHING_FOUND = 1
USAGE = 2
CANNOT_START = 3
UNSUPPORTED = 4
INTERRUPTED = 130

_BOLD, _DIM, _RED, _PLAIN = "\033[1m", "\033[2m", "\033[31m", "\033[0m"


class Failure(Exception):
    """Ends a command with one line on stderr and an exit status."""

    def __init__(self, text: str, status: int = CANNOT_START) -> None:
        super().__init__(text)
        self.status = status


def say(*lines: str) -> None:
    """Writes lines to stderr, each with the program's name; a closed stderr is nobody's business."""
    try:
        for line in lines:
            sys.stderr.write(f"{PROGRAM}: {line}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def plain(text: str) -> str:
    """Text of a recording on one line: what could steer a terminal is shown, not obeyed."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def write(text: str) -> None:
    """Writes results to stdout; a question mark stands for what its encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        leave_stdout()
        raise Failure(f"stdout cannot be written: {error.strerror}") from None


def leave_stdout() -> None:
    """Leaves nothing for the interpreter to flush at exit to where it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_lines(lines: Iterable[str]) -> None:
    """Writes results to stdout, each on a line."""
    write("".join(f"{line}\n" for line in lines))


def has_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user wants colours."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Style:
    """Emphasis for a stream, or none."""

    def __init__(self, stream: TextIO) -> None:
        self._is_on = has_colour(stream)

    def bold(self, text: str) -> str:
        """What is to be seen first."""
        return self._with(_BOLD, text)

    def dim(self, text: str) -> str:
        """What is there for completeness."""
        return self._with(_DIM, text)

    def red(self, text: str) -> str:
        """What is wrong."""
        return self._with(_RED, text)

    def _with(self, code: str, text: str) -> str:
        return f"{code}{text}{_PLAIN}" if self._is_on else text


class LiveLine:
    """One line on a terminal that is written over and over; nothing at all elsewhere."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_on = self._stream.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, text: str) -> None:
        """Puts a text in place of the last one."""
        if self._is_on:
            self._stream.write(f"\r\033[K{PROGRAM}: {text}")
            self._stream.flush()

    def clear(self) -> None:
        """Takes the line away."""
        if self._is_on:
            self._stream.write("\r\033[K")
            self._stream.flush()

    def __enter__(self) -> "LiveLine":
        return self

    def __exit__(self, *exception: object) -> None:
        self.clear()


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def duration_text(nanoseconds: float) -> str:
    """A duration for people, with three digits that count."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return (
                f"{value:.2f} {unit}"
                if value < 10
                else f"{value:.1f} {unit}"
                if value < 100
                else f"{value:,.0f} {unit}"
            )
    return f"{nanoseconds:.0f} ns"
