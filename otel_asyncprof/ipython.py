"""IPython and Jupyter: `%load_ext otel_asyncprof.ipython`, then `%%asyncprof` at the head of a cell.

The cell runs where it would run without it: with `await` on the notebook's own event loop.
"""

import argparse
import shlex
import sys
from typing import Any

from .analysis.findings import Findings
from .analysis.split import text_of
from .cli.messages import Style, duration_text
from .cli.tables import stack_lines
from .cli.values import rate
from .errors import ProfilerUnavailable
from .formats.process_profile import process_profiles
from .testing import capture

_SHOWN = 5


def load_ipython_extension(shell: Any) -> None:
    """Called by %load_ext."""
    shell.register_magic_function(_Magic(shell).run, magic_kind="cell", magic_name="asyncprof")


def unload_ipython_extension(shell: Any) -> None:
    """Called by %unload_ext."""
    shell.magics_manager.magics["cell"].pop("asyncprof", None)
