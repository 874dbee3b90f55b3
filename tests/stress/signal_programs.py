"""Programs of signal_steps.py: how they are run, and what is expected of those that crash."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
FATAL = "Fatal Python error: Segmentation fault"
TIMEOUT_SECONDS = 120

RunSteps = Callable[..., tuple[int, str]]


def assert_crashed(ended: tuple[int, str], tracebacks: int, foreign: int = 0) -> None:
    """It died by SIGSEGV, and that was told as often as it should."""
    status, errors = ended
    assert status == -signal.SIGSEGV, errors
    assert (errors.count(FATAL), errors.count("foreign\n")) == (tracebacks, foreign), errors
