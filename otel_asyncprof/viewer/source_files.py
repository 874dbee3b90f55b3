"""Lines of source files: only of files that stored frames name and that lie under the root."""

import sqlite3
from pathlib import Path
from typing import Any

from .selection import NothingThere

MAX_BYTES = 4 << 20  # of a file
MAX_CONTEXT = 500  # lines on each side
SUFFIX = ".py"


class NotAllowed(Exception):
    """A file that is not to be shown."""


def mapped(file: str, mappings: list[tuple[str, str]]) -> str:
    """Where a file of the profiled machine lies here: the first mapping whose begin it has."""
    for there, here in mappings:
        if file == there or file.startswith(there.rstrip("/") + "/"):
            return here.rstrip("/") + file[len(there.rstrip("/")) :]
    return file


def source_json(
    connection: sqlite3.Connection, root: Path, mappings: list[tuple[str, str]], file: str, line: int, context: int
) -> dict[str, Any]:
    """Some lines around a line."""
    if not connection.execute("SELECT 1 FROM frame WHERE file = ? LIMIT 1", (file,)).fetchone():
        raise NotAllowed("no stored frame names this file")
    try:
        path = Path(mapped(file, mappings)).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        raise NothingThere("this file is not on this machine; --path-map THERE=HERE tells where it lies") from None
    if path.suffix != SUFFIX or not path.is_file() or not path.is_relative_to(root.resolve()):
        raise NotAllowed(f"this file is no {SUFFIX} file under --source-root")
    if path.stat().st_size > MAX_BYTES:
        raise NotAllowed("this file is too large to be shown")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    context = min(max(context, 0), MAX_CONTEXT)
    first = min(max(line - context, 1), max(len(lines), 1))
    return {"file": file, "first": first, "lines": lines[first - 1 : line + context]}
