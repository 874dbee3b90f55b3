"""The `otel-asyncprof` command."""

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from types import FrameType

from otel_asyncprof.cli import demo


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs one command; its exit status."""
    parser = argparse.ArgumentParser(
        prog="otel-asyncprof", description="Which request and which line of code asked for a slow query."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('otel-asyncprof')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo.add_command(commands)
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    status: int = chosen.run(chosen)
    return status


def _end(number: int, frame: FrameType | None) -> None:
    """Ends by an exception, so that every child process is ended on the way out."""
    sys.exit(128 + number)
