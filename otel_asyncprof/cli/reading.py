"""Reads a recording that somebody names on the command line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UnreadableRecording
from .messages import CANNOT_START, Failure, LiveLine
from .output import Output

if TYPE_CHECKING:
    from ..analysis.findings import Findings
    from ..formats.recording import Recording


def read_file(name: str) -> "Recording":
    """The recording in a file, or in stdin for `-`; a Failure with one line when there is none."""
    from ..formats.recording import read_recording

    with LiveLine() as live:
        live.show(f"reading {name} …")
        try:
            return read_recording(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())
        except OSError as error:
            raise Failure(f"{name} cannot be read: {error.strerror}", CANNOT_START) from None
        except UnreadableRecording as error:
            raise Failure(f"{name} is no recording: {error}; `otel-asyncprof run -o x.jsonl` makes one") from None


def read_findings(name: str) -> "Findings":
    """What a recording says; a Failure with one line when it cannot be read."""
    from ..analysis.findings import Findings

    recording = read_file(name)
    with _fitting(name):
        return Findings.of(recording)


def convert(name: str, output: Output) -> None:
    """Writes a recording in another format; a Failure with one line when one of both cannot be done."""
    recording = read_file(name)
    try:
        with _fitting(name):
            output.write(recording)
    except BrokenPipeError:  # of stdout, about which there is nothing to say
        raise
    except OSError as error:
        where = "stdout" if str(output.path) == "-" else output.path
        raise Failure(f"{where} cannot be written: {error.strerror}") from None


@contextmanager
def _fitting(name: str) -> Iterator[None]:
    try:
        yield
    except (IndexError, ValueError) as error:
        raise Failure(f"{name} is no recording: its parts do not fit each other ({error})") from None
