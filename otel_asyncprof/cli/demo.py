"""`otel-asyncprof demo`: a service with slow queries, led back to their requests and lines of code."""

import argparse
import signal
import sys
from importlib.util import find_spec
from types import FrameType

from .output import Output

NEEDED = (
    "aiosqlite",
    "opentelemetry.instrumentation",
    "opentelemetry.proto",
    "pydantic",
    "starlette",
    "tortoise",
    "uvicorn",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.add_argument(
        "--once", action="store_true", help="end after the report; otherwise the page stays until Ctrl-C"
    )
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    Output.add_arguments(parser, "also write what has arrived to FILE, for the other commands")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    if missing := _missing():
        reason = f"{', '.join(missing)} cannot be imported: pip install 'otel-asyncprof[demo]'"
        print(f"otel-asyncprof demo: {reason}", file=sys.stderr)
        return 1
    from otel_asyncprof.demo.main import run_demo

    signal.signal(signal.SIGTERM, _end)

    output = Output.of(chosen, None) if chosen.output else None
    if output is not None:
        output.check()
    return run_demo(once=chosen.once, as_json=chosen.json, output=output)


def _end(number: int, frame: FrameType | None) -> None:
    """Ends by an exception, so that every child process is ended on the way out."""
    sys.exit(128 + number)


def _missing() -> list[str]:
    missing = []
    for name in NEEDED:
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            missing.append(name)
    return missing
