"""`otel-asyncprof open`: shows recordings on the viewer's page."""

import argparse
import os
import tempfile
from typing import TYPE_CHECKING

from .messages import CANNOT_START, Failure, say
from .reading import read_file
from .viewer_options import add_page_options, require_viewer, serve_until_ended

if TYPE_CHECKING:
    from ..viewer.server import Viewer

_NO_LIMIT = (1 << 62) - 1  # neither of size nor of age: what somebody has asked to see is not thrown away


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording, of `run -o` or of an export as OTLP")
    add_page_options(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Shows the page until it is interrupted; nothing is kept."""
    require_viewer()
    from ..viewer.server import ViewerOptions
    from ..viewer.store import Limits
    from .page import page_of

    recordings = [(name, read_file(name)) for name in chosen.files]

    def fill(viewer: "Viewer") -> list[str]:
        for name, recording in recordings:
            try:
                viewer.intake.take_all(recording)
            except ValueError as error:
                reason = f"its parts do not fit each other ({error})"
                raise Failure(f"{name} is no recording: {reason}", CANNOT_START) from None
        recordings.clear()
        return [f"page   {viewer.address_with_token}      (Ctrl-C ends)"]

    with tempfile.TemporaryDirectory(prefix="otel-asyncprof-") as folder:
        options = ViewerOptions(
            grpc_port=None,
            http_port=None,
            ui_port=chosen.ui_port,
            database=os.path.join(folder, "viewer.db"),
            limits=Limits(_NO_LIMIT, _NO_LIMIT),
            source_root=chosen.source_root,
            path_map=tuple(chosen.path_map),
            editor=chosen.editor,
            say=say,
            html_of=page_of,
        )
        return serve_until_ended(options, chosen, fill)
