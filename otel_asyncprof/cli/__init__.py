"""The `otel-asyncprof` command."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from otel_asyncprof.cli.messages import INTERRUPTED, PROGRAM, USAGE, Failure, leave_stdout, say, write_lines

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
    "open": "show recordings on that page",
    "doctor": "check this interpreter, its packages and the way to the receiver",
    "demo": "run a small web service and lead its slow queries back to their code",
}
_USAGE = f"{PROGRAM} [-h] [--version] COMMAND ..."
_DESCRIPTION = "Which request and which line of code asked for a slow query."


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs one command; its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _replace_closed_streams()
    try:
        return _run(given)
    except Failure as failure:
        say(str(failure))
        return failure.status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads has seen enough
        leave_stdout()
        return 0


def _replace_closed_streams() -> None:
    """What the shell's `>&-` has closed leads nowhere; a program that is run still has it closed."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


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

    name = given[0] if given else ""
    if name not in COMMANDS:
        known = ", ".join(COMMANDS)
        wrong = f"there is no command {name!r}" if name else "a command is missing"
        raise Failure(f"{wrong}: one of {known}; {PROGRAM} --help says what they do", USAGE)
    description = COMMANDS[name]
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {name}", description=f"{description[0].upper()}{description[1:]}."
    )
    module = import_module(f"otel_asyncprof.cli.{name}")
    module.add_arguments(parser)
    if name != "run":
        return parser.parse_args(given[1:])
    own, kind, program = module.split_arguments(parser, given[1:])
    chosen = parser.parse_args(own)
    chosen.kind, chosen.program = kind, program
    return chosen
