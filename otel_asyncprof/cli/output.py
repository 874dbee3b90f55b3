"""Where a command writes its result, and in which format."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from .messages import CANNOT_START, USAGE, Failure

if TYPE_CHECKING:
    from ..formats.recording import Recording

REPORT_SUFFIXES = (".html", ".htm")
# As in formats.choice, which --help need not import; a test compares them.
FORMAT_NAMES = ("otlp", "otlp-json", "pprof", "speedscope", "collapsed", "chrome", "gecko")


@dataclass(frozen=True)
class Output:
    """A file with its format; no file when only a summary is wanted."""

    path: Path | None
    format: str
    mode: str

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser, help_of_output: str, *, required: bool = False) -> None:
        """The arguments -o, -f and --mode."""
        parser.add_argument("-o", "--output", metavar="FILE", required=required, help=help_of_output)
        parser.add_argument(
            "-f",
            "--format",
            choices=(*FORMAT_NAMES, "html"),
            metavar="FORMAT",
            help=f"{', '.join(FORMAT_NAMES)} or html (default: what the suffix of FILE says)",
        )
        parser.add_argument(
            "--mode",
            choices=("wall", "cpu"),
            default="wall",
            help="which time a format that holds one shows (default wall)",
        )

    @classmethod
    def of(cls, chosen: argparse.Namespace, default_stem: str | None) -> Self:
        """What the arguments say; a Failure when the format cannot be told."""
        name = chosen.output
        if not name and default_stem:
            name = default_stem + _suffix_of(chosen.format or "otlp-json")
        format_name = chosen.format or ("otlp-json" if name is None else _format_of(name))
        if format_name is None:
            raise Failure(f"the suffix of {name} names no format: say -f ({', '.join((*FORMAT_NAMES, 'html'))})", USAGE)
        return cls(Path(name) if name else None, format_name, chosen.mode)

    @classmethod
    def of_file(cls, name: str) -> Self:
        """The format that the suffix of the file says, where nothing else can; a Failure when it says none."""
        format_name = _format_of(name)
        if format_name is None:
            suffixes = ", ".join(_suffix_of(known) for known in (*FORMAT_NAMES, "html"))
            raise Failure(f"the suffix of {name} names no format: use one of {suffixes}", USAGE)
        return cls(Path(name), format_name, "wall")

    @property
    def holds_recording(self) -> bool:
        """Whether the other commands can read the file."""
        return self.format in ("otlp", "otlp-json")

    def check(self) -> None:
        """A Failure when the file could not be written: better now than after an hour."""
        if self.path is None or str(self.path) == "-":
            return
        folder = self.path.parent
        reason = None
        if self.path.is_dir():
            reason = "it is a folder"
        elif not folder.is_dir():
            reason = f"there is no folder {folder}"
        elif not os.access(place := self.path if self.path.exists() else folder, os.W_OK):
            reason = f"{place.absolute()} is not writable"
        if reason:
            raise Failure(f"{self.path} cannot be written: {reason}", CANNOT_START)

    def write(self, recording: "Recording") -> bool:
        """Writes the file, or stdout for `-`; OSError when it cannot be. False when there is none to write."""
        if self.path is None:
            return False
        content = self._content(recording)
        if self.path.name.lower().endswith(".gz") and content[:2] != b"\x1f\x8b":
            import gzip

            content = gzip.compress(content, mtime=0)
        if str(self.path) == "-":
            _write_all(1, content)
        else:
            self.path.write_bytes(content)
        return True

    def _content(self, recording: "Recording") -> bytes:
        if self.format == "html":
            from .page import page_of

            return page_of(recording)
        from ..formats.choice import named

        return named(self.format).encode(recording, self.mode)


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _suffix_of(format_name: str) -> str:
    from ..formats.choice import named

    return REPORT_SUFFIXES[0] if format_name == "html" else named(format_name).suffixes[0]


def _format_of(name: str) -> str | None:
    from ..formats.choice import for_file

    if name.lower().endswith(REPORT_SUFFIXES):
        return "html"
    found = for_file(name)
    return found.name if found else None
