"""The `otel-asyncprof` command."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from otel_asyncprof.cli.messages import INTERRUPTED, PROGRAM, Failure, say

# Each command is a module, which only its own use imports: --help has to be there at once.
COMMANDS = {
    "run": "run a program and profile it",
    "report": "tell what a recording says, on the terminal or as one page",
    "traces": "list the requests of a recording",
    "queries": "list the queries of a recording, and who asked for them",
    "stacks": "list the stacks on which time was spent",
    "diff": "compare two recordings",
    "export": "write a recording in another format",
    "serve": "receive traces and profiles, and show them on a page",
    "open": "show recordings on that page",
    "doctor": "check this interpreter, its packages and the way to the receiver",
    "demo": "run a small web service, send it requests, and lead its slow queries back to request and code",
}


class _Version(argparse.Action):
    """Looks the version up when it is asked for: that takes longer than all the rest of --help."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        from importlib.metadata import version

        print(f"{PROGRAM} {version('otel-asyncprof')}")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs one command; its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        chosen = _parse(given)
        status: int = chosen.run(chosen)
        sys.stdout.flush()
        return status
    except Failure as failure:
        say(str(failure))
        return failure.status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever reads has seen enough. Nothing is left for the interpreter to flush into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parse(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Which request and which line of code asked for a slow query."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    name = given[0] if given else ""
    for known, description in COMMANDS.items():
        of_command = commands.add_parser(
            known, help=description, description=f"{description[0].upper()}{description[1:]}."
        )
        if known == name:
            module = import_module(f"otel_asyncprof.cli.{known}")
            module.add_arguments(of_command)
    if name != "run":
        return parser.parse_args(given)
    own, kind, program = module.split_arguments(commands.choices[name], given[1:])
    chosen = parser.parse_args([name, *own])
    chosen.kind, chosen.program = kind, program
    return chosen
