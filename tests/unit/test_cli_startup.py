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
ALLOWED = {"--help": set[str](), "run": {"inspect", "tempfile"}, "report": {"inspect"}, "diff": {"inspect"}}


def loaded_by(arguments: list[str]) -> set[str]:
    """The modules that a command imports."""
    code = PROGRAM.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("name", ALLOWED)
def test_help_imports_nothing_heavy(name: str) -> None:
    """Neither asyncio nor the SDK, nor what looks up versions; without a command not even what parses arguments."""
    arguments = [name] if name == "--help" else [name, "--help"]
    heavy = HEAVY | ({"argparse", "re"} if name == "--help" else set())
    assert loaded_by(arguments) & heavy <= ALLOWED[name]


def test_help_imports_no_command() -> None:
    """Each is imported when it is used."""
    loaded = loaded_by(["--help"])
    own = {name for name in loaded if name.startswith("otel_asyncprof")}
    assert own == {"otel_asyncprof", "otel_asyncprof._version", "otel_asyncprof.cli", "otel_asyncprof.cli.messages"}
