"""`otel-asyncprof serve`: receives traces and profiles, and shows them on a page."""

import argparse
import os
from typing import TYPE_CHECKING

from .messages import say
from .viewer_options import VARIABLES, add_option, add_page_options, age, port, require_viewer, serve_until_ended, size

if TYPE_CHECKING:
    from ..viewer.server import Viewer, ViewerOptions


def default_database() -> str:
    """Where data are kept when nothing else is said."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "otel-asyncprof", "viewer.db")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.epilog = f"Each option that takes a value is also a variable: --db-max-size is {VARIABLES}DB_MAX_SIZE."
    add_option(parser, "--host", str, "127.0.0.1", "address to listen on (default 127.0.0.1)")
    add_option(parser, "--grpc-port", port, "4317", "OTLP over gRPC (default 4317); 0: any free", "PORT")
    add_option(parser, "--http-port", port, "4318", "OTLP over HTTP (default 4318); 0: any free", "PORT")
    add_page_options(parser)
    add_option(
        parser,
        "--db",
        str,
        default_database(),
        "file that keeps what is received, or :memory: (default %(default)s)",
        "PATH",
    )
    add_option(parser, "--db-max-size", size, "512MB", "of the file (default 512MB)", "SIZE")
    add_option(parser, "--retain", age, "7d", "how long data stay (default 7d)", "TIME")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[name for name in os.environ.get(f"{VARIABLES}ALLOW_HOST", "").split(",") if name],
        metavar="NAME",
        help="a further name by which this machine is asked",
    )
    add_option(
        parser, "--token", str, None, "on other addresses than loopback (default: a new one); needed from everybody"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Serves until it is interrupted."""
    require_viewer()
    return serve_until_ended(_options(chosen), chosen, lambda viewer: _greeting(viewer, chosen))


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


def _greeting(viewer: "Viewer", chosen: argparse.Namespace) -> list[str]:
    kept = "all is gone at the end" if chosen.db == ":memory:" else f"data are kept in {chosen.db}"
    endpoint = viewer.http_address
    lines = [
        f"page   {viewer.address_with_token}      (Ctrl-C ends; {kept})",
        f"OTLP   grpc {viewer.grpc_address or '-'}   http {viewer.http_address or '-'}",
        f"try    OTEL_EXPORTER_OTLP_ENDPOINT={endpoint} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf "
        "OTEL_ASYNCPROF_TIMELINE=true your-program",  # the distro's protocol is gRPC
    ]
    if viewer.access.token:
        header = f"OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20{viewer.access.token}'"
        needed = "the page and the receivers need this token"
        lines.append(f"others can reach {chosen.host}: {needed}; for senders: {header}")
    return lines
