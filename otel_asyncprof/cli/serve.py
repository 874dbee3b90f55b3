"""`otel-asyncprof serve`: receives traces and profiles, and shows them on a page."""

import argparse
import os
import re
import signal
import sys
import threading
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .messages import CANNOT_START, Failure, say, write_lines
from .values import duration

if TYPE_CHECKING:
    from ..viewer.server import Viewer, ViewerOptions

NEEDED = ("starlette", "uvicorn")
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


def default_database() -> str:
    """Where data are kept when nothing else is said."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "otel-asyncprof", "viewer.db")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--grpc-port", type=_port, default=4317, metavar="PORT", help="OTLP over gRPC (default 4317)")
    parser.add_argument("--http-port", type=_port, default=4318, metavar="PORT", help="OTLP over HTTP (default 4318)")
    parser.add_argument(
        "--ui-port",
        type=_port,
        default=os.environ.get("OTEL_ASYNCPROF_VIEWER_UI_PORT") or "8418",  # a text is checked like one that is given
        metavar="PORT",
        help="the page (default 8418, or the next one that is free); 0 is any free port, here and above",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open the page in a browser")
    parser.add_argument(
        "--db",
        default=os.environ.get("OTEL_ASYNCPROF_VIEWER_DB") or default_database(),
        metavar="PATH",
        help="file that keeps what is received, or :memory: (default %(default)s)",
    )
    parser.add_argument(
        "--db-max-size", type=size, default=512 << 20, metavar="SIZE", help="of the file (default 512MB)"
    )
    parser.add_argument(
        "--retain", type=age, default=7 * 86400.0, metavar="TIME", help="how long data stay (default 7d)"
    )
    parser.add_argument(
        "--source-root",
        type=Path,
        default=Path.cwd(),
        metavar="DIR",
        help="folder whose source files the page may show (default: here)",
    )
    parser.add_argument(
        "--path-map", type=mapping, action="append", default=[], metavar="THERE=HERE", help="where sources lie here"
    )
    parser.add_argument(
        "--editor",
        type=editor,
        default=os.environ.get("OTEL_ASYNCPROF_VIEWER_EDITOR") or None,
        help=f"for links to sources: {', '.join(EDITORS)}, or a URL with {{file}} and {{line}}",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name by which this machine is asked",
    )
    parser.add_argument("--token", help="on other addresses than loopback (default: a new one); needed from everybody")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    parser.add_argument("--ready-json", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--until-stdin-ends", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return int(text)


def run(chosen: argparse.Namespace) -> int:
    """Serves until it is interrupted."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise Failure(f"{' and '.join(missing)} cannot be imported: pip install 'otel-asyncprof[viewer]'", CANNOT_START)
    from ..viewer.server import CannotStart, Viewer

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    try:
        viewer = Viewer(_options(chosen))
        viewer.start()
    except CannotStart as error:
        raise Failure(str(error), CANNOT_START) from None
    try:
        _greet(viewer, chosen)
        if chosen.until_stdin_ends:
            threading.Thread(target=_wait_for_stdin, args=(ended,), daemon=True).start()
        ended.wait()
    finally:
        viewer.stop()
    return 0


def _wait_for_stdin(ended: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    ended.set()


def _options(chosen: argparse.Namespace) -> "ViewerOptions":
    from ..viewer.server import ViewerOptions
    from ..viewer.store import Limits
    from .page import page_of

    return ViewerOptions(
        host=chosen.host,
        grpc_port=chosen.grpc_port,
        http_port=chosen.http_port,
        ui_port=chosen.ui_port,
        database=chosen.db,
        limits=Limits(chosen.db_max_size, int(chosen.retain * 1e9)),
        source_root=chosen.source_root,
        path_map=tuple(chosen.path_map),
        editor=chosen.editor,
        allowed_hosts=tuple(chosen.allow_host),
        token=chosen.token,
        say=say,
        html_of=page_of,
    )


def _greet(viewer: "Viewer", chosen: argparse.Namespace) -> None:
    if chosen.ready_json:
        import json

        addresses = {"page": viewer.address_with_token, "http": viewer.http_address, "grpc": viewer.grpc_address}
        write_lines([json.dumps(addresses)])
    if not chosen.quiet:
        kept = "all is gone at the end" if chosen.db == ":memory:" else f"data are kept in {chosen.db}"
        endpoint = viewer.http_address
        say(
            f"page   {viewer.address_with_token}      (Ctrl-C ends; {kept})",
            f"OTLP   grpc {viewer.grpc_address or '-'}   http {viewer.http_address or '-'}",
            f"try    OTEL_EXPORTER_OTLP_ENDPOINT={endpoint} OTEL_ASYNCPROF_TIMELINE=true your-program",
        )
        if viewer.access.token:
            header = f"OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20{viewer.access.token}'"
            say(f"others can reach {chosen.host}: the page and the receivers need this token; for senders: {header}")
    if (
        not chosen.no_browser
        and sys.stderr.isatty()
        and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    ):
        webbrowser.open(viewer.address_with_token)
