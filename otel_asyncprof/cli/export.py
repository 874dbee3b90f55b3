"""`otel-asyncprof export`: a recording in the formats of other tools."""

import argparse

from .messages import say
from .output import Output
from .reading import convert


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.add_argument("file", metavar="FILE", help="a recording: otel-asyncprof run -o FILE")
    Output.add_arguments(parser, "the file to write; - is stdout", required=True)
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Writes the file."""
    output = Output.of(chosen, None)
    output.check()
    convert(chosen.file, output)
    if not chosen.quiet and str(output.path) != "-":
        say(f"written {output.path} ({output.format})")
    return 0
