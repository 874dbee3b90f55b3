"""What the commands that show the page have in common: their options, and how they serve until they are ended."""

import argparse
import os
import re
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .messages import CANNOT_START, Failure, say, write_lines
from .values import duration

if TYPE_CHECKING:
    from ..viewer.server import Viewer, ViewerOptions

NEEDED = ("starlette", "uvicorn")
VARIABLES = "OTEL_ASYNCPROF_VIEWER_"
EDITORS = {
    "vscode": "vscode://file/{file}:{line}",
    "cursor": "cursor://file/{file}:{line}",
    "idea": "idea://open?file={file}&line={line}",
}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?)I?B?", re.IGNORECASE)
_LEAST_SIZE = 16 << 20


def size(text: str) -> int:
    """A size such as 512MB or 2G."""
    match = _SIZE.fullmatch(text.strip())
    value = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if value < _LEAST_SIZE:
        raise argparse.ArgumentTypeError(f"{text!r} is no size from 16MB on, such as 512MB or 2GB")
    return value


def age(text: str) -> float:
    """A duration in which days are understood, too."""
    days = text.strip().removesuffix("d")
    return float(days) * 86400 if days != text.strip() and days.replace(".", "", 1).isdigit() else duration(text)


def mapping(text: str) -> tuple[str, str]:
    """THERE=HERE."""
    there, equals, here = text.partition("=")
    if not equals or not there or not here:
        raise argparse.ArgumentTypeError(f"{text!r} is not THERE=HERE")
    return there, here


def editor(text: str) -> str:
    """A known editor, or a URL with {file} and {line}."""
    found = EDITORS.get(text, text)
    if "{file}" not in found or re.match(r"(?i)\s*(javascript|data|vbscript):", found):
        raise argparse.ArgumentTypeError(f"say {', '.join(EDITORS)}, or a URL with {{file}} and {{line}}")
    return found


def port(text: str) -> int:
    """A port; 0 is any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return int(text)


class _OfVariable(str):
    """A value from the environment, which an error has to say."""

    variable = ""


def add_option(
    parser: argparse.ArgumentParser,
    name: str,
    parse: Callable[[str], object],
    default: str | None,
    help_text: str,
    metavar: str | None = None,
) -> None:
    """An option whose default is a variable of the environment: --ui-port is OTEL_ASYNCPROF_VIEWER_UI_PORT."""
    variable = VARIABLES + name.removeprefix("--").replace("-", "_").upper()
    given = os.environ.get(variable)
    if given:
        default = _OfVariable(given)
        default.variable = variable

    def parsed(text: str) -> object:
        try:
            return parse(text)
        except argparse.ArgumentTypeError as error:
            if isinstance(text, _OfVariable):
                raise argparse.ArgumentTypeError(f"{text.variable}: {error}") from None
            raise

    parser.add_argument(name, type=parsed, default=default, metavar=metavar, help=help_text)


def add_page_options(parser: argparse.ArgumentParser) -> None:
    """The options of everything that shows the page."""
    add_option(
        parser, "--ui-port", port, "8418", "the page (default 8418, or the next one that is free); 0: any free", "PORT"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open the page in a browser")
    add_option(parser, "--source-root", Path, ".", "folder whose source files the page may show (default: here)", "DIR")
    parser.add_argument(
        "--path-map", type=mapping, action="append", default=[], metavar="THERE=HERE", help="where sources lie here"
    )
    known = f"{', '.join(EDITORS)}, or a URL with {{file}} and {{line}}"
    add_option(parser, "--editor", editor, None, f"for links to sources: {known}")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    parser.add_argument("--ready-json", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--until-stdin-ends", action="store_true", help=argparse.SUPPRESS)


def require_viewer() -> None:
    """A Failure where the extra is not installed."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise Failure(f"{' and '.join(missing)} cannot be imported: pip install 'otel-asyncprof[viewer]'", CANNOT_START)


def serve_until_ended(
    options: "ViewerOptions",
    chosen: argparse.Namespace,
    greeting: Callable[["Viewer"], Sequence[str]],
) -> int:
    """Serves until a signal, or the end of stdin where that was asked for. `greeting` may fill the viewer first."""
    from ..viewer.server import CannotStart, Viewer

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    try:
        viewer = Viewer(options).start()
    except CannotStart as error:
        raise Failure(str(error), CANNOT_START) from None
    try:
        lines = greeting(viewer)
        if chosen.ready_json:
            import json

            addresses = {"page": viewer.address_with_token, "http": viewer.http_address, "grpc": viewer.grpc_address}
            write_lines([json.dumps(addresses)])
        if not chosen.quiet:
            say(*lines)
        if not chosen.no_browser:
            open_browser(viewer.address_with_token)
        if chosen.until_stdin_ends:
            threading.Thread(target=_wait_for_stdin, args=(ended,), daemon=True).start()
        ended.wait()
    finally:
        viewer.stop()
    return 0


def open_browser(address: str) -> None:
    """Shows a page, where somebody sits in front of a screen."""
    if sys.stderr.isatty() and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        webbrowser.open(address)


def _wait_for_stdin(ended: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    ended.set()
