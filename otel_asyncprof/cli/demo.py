"""`otel-asyncprof demo`: a service with slow queries, led back to their requests and lines of code."""

import argparse
import sys
from importlib.util import find_spec
from typing import Any

HELP = "run a small web service, send it requests, and lead its slow queries back to request and code"
NEEDED = (
    "aiosqlite",
    "opentelemetry.instrumentation",
    "opentelemetry.proto",
    "pydantic",
    "starlette",
    "tortoise",
    "uvicorn",
)


def add_command(commands: Any) -> None:
    """Adds the command to the parser's commands."""
    parser = commands.add_parser("demo", help=HELP, description=HELP)
    parser.add_argument("--once", action="store_true", help="end after one round; otherwise Ctrl-C ends the demo")
    parser.add_argument("--json", action="store_true", help="print each round's report as one JSON object")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    if missing := _missing():
        reason = f"{', '.join(missing)} cannot be imported: pip install 'otel-asyncprof[demo]'"
        print(f"otel-asyncprof demo: {reason}", file=sys.stderr)
        return 1
    from otel_asyncprof.demo.main import run_demo

    return run_demo(once=chosen.once, as_json=chosen.json)


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
