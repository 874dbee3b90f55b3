"""The `otel-asyncprof` command."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from otel_asyncprof.cli.messages import INTERRUPTED, PROGRAM, Failure, say, write_lines

if TYPE_CHECKING:
    import argparse

# Each command is a module, which only its own use imports: --help has to be there at once, so without argparse, too.
COMMANDS = {
    "run": "run a program and profile it",
    "report": "tell what a recording says, on the terminal or as one page",
    "traces": "list the requests of a recording",
    "queries": "list the queries of a recording, and who asked for them",
    "stacks": "list the stacks on which time was spent",
    "diff": "compare two recordings",
    "export": "write a recording in another format",
    "serve": "receive traces and profiles, and show them on a page",
    "doctor": "check this interpreter, its packages and the way to the receiver",
    "demo": "run a small web service and lead its slow queries back to their code",
}
_USAGE = f"{PROGRAM} [-h] [--version] COMMAND ..."
_DESCRIPTION = "Which request and which line of code asked for a slow query."


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs one command; its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = _run(given)
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


def _run(given: list[str]) -> int:
    match given:
        case ["-h" | "--help", *_]:
            write_lines(_help())
            return 0
        case ["--version", *_]:
            from importlib.metadata import version

            write_lines([f"{PROGRAM} {version('otel-asyncprof')}"])
            return 0
    chosen = _parse(given)
    status: int = chosen.run(chosen)
    return status


def _help() -> list[str]:
    options = {"-h, --help": "show this help message and exit", "--version": "print the version"}
    return [
        f"usage: {_USAGE}",
        "",
        _DESCRIPTION,
        "",
        "options:",
        *(f"  {name:<12}{text}" for name, text in options.items()),
        "",
        "commands:",
        *(f"  {name:<12}{text}" for name, text in COMMANDS.items()),
        "",
        f"{PROGRAM} COMMAND --help says more about each.",
    ]


def _parse(given: list[str]) -> "argparse.Namespace":
    import argparse

    parser = argparse.ArgumentParser(prog=PROGRAM, usage=_USAGE, add_help=False, allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command", prog=PROGRAM)
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
