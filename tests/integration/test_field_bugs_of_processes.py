"""What users of other profilers have reported of whole processes, under the numbers of our acceptance list."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from integration.applications import PROGRAMS

TIMEOUT_SECONDS = 120.0


# What the debug allocator frees it overwrites.
@pytest.mark.parametrize("allocator", ["pymalloc", "debug"])
def test_a13_frames_that_are_freed_under_the_sampler_cost_nothing_but_samples(allocator: str) -> None:
    """CR1: few reads fail, no stack is torn, and the last moment is seen as well."""
    ended = subprocess.run(
        [sys.executable, str(PROGRAMS / "churn.py"), "2"],
        env=os.environ | {"PYTHONMALLOC": allocator},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    seen = json.loads(ended.stdout)
    assert seen["ticks"] >= 50
    assert seen["drops"] < 0.05 * seen["samples"]  # about 0.01, 0.03 with the debug allocator
    assert seen["torn"] < 0.01
    assert seen["last moment"]
