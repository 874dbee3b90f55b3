"""What a command costs before it does anything: told by what is imported, not by a clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
before = set(sys.modules)
from otel_asyncprof.cli import main
try:
    main({arguments!r})
except SystemExit:
    pass
print(*set(sys.modules) - before, file=sys.stderr)
"""
HEAVY = {"asyncio", "opentelemetry", "google", "grpc", "requests", "importlib.metadata", "inspect", "logging"}
HEAVY |= {"tempfile"}


def loaded_by(arguments: list[str]) -> set[str]:
    """The modules that a command imports."""
    code = PROGRAM.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["report", "--help"], ["diff", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """Neither asyncio nor the SDK, nor what looks up versions."""
    assert loaded_by(arguments) & (HEAVY if arguments == ["--help"] else HEAVY - {"inspect", "tempfile"}) == set()


def test_help_imports_no_command() -> None:
    """Each is imported when it is used."""
    loaded = loaded_by(["--help"])
    own = {name for name in loaded if name.startswith("otel_asyncprof")}
    assert own == {"otel_asyncprof", "otel_asyncprof._version", "otel_asyncprof.cli", "otel_asyncprof.cli.messages"}
