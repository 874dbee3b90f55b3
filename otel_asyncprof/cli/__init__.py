"""The `otel-asyncprof` command."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from otel_asyncprof.cli import demo, diff, export, questions, report, run
from otel_asyncprof.cli.messages import INTERRUPTED, PROGRAM, Failure, say



class _Version(argparse.Action):
    """Looks the version up when it is asked for: that takes longer than all the rest of --help."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        from importlib.metadata import version

        print(f"{PROGRAM} {version('otel-asyncprof')}")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs one command; its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Which request and which line of code asked for a slow query."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    run.add_command(commands)
    report.add_command(commands)
    questions.add_commands(commands)
    diff.add_command(commands)
    export.add_command(commands)
    demo.add_command(commands)
    if given[:1] == ["run"]:
        own, kind, program = run.split_arguments(commands.choices["run"], given[1:])
        chosen = parser.parse_args(["run", *own])
        chosen.kind, chosen.program = kind, program
    else:
        chosen = parser.parse_args(given)
    signal.signal(signal.SIGTERM, _end)
    try:
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


def _end(number: int, frame: FrameType | None) -> None:
    """Ends by an exception, so that every child process is ended on the way out."""
    sys.exit(128 + number)
