"""Runs `otel-asyncprof` as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
SHOP = PROGRAMS / "cli_shop.py"
COMMAND = [sys.executable, "-m", "otel_asyncprof"]
TIMEOUT_SECONDS = 120


def environment(**variables: str) -> dict[str, str]:
    """That of this process without what is OpenTelemetry's or a terminal's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_") and name != "NO_COLOR"}
    return {**kept, **variables}


def otel_asyncprof(
    *arguments: object, stdin: str = "", cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """One command, run to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(**variables),
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
