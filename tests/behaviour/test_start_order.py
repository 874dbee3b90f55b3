"""Whenever and wherever the profiler starts, the same stacks are seen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from assertions import decode

TESTS = Path(__file__).parent.parent
ORDERS = [
    "before asyncio",
    "before the loop",
    "loop set, not running",
    "inside the loop",
    "inside a child task",
    "from another thread",
]


@pytest.mark.parametrize("order", ORDERS)
def test_the_picture_is_the_same_wherever_the_profiler_starts(order: str, tmp_path: Path) -> None:
    """B23, WS16: the waiting and the working stack, whole, and no other of the leaf task."""
    result = tmp_path / "result.json"
    command = [sys.executable, str(TESTS / "targets" / "start_order.py"), order, str(result)]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(TESTS)}, check=True, timeout=60)
    samples = [decode(sample) for sample in json.loads(result.read_text(encoding="utf-8"))]
    above = ("<module>", "start_program", "main", "middle", "leaf")
    assert {sample.names for sample in samples if sample.leaf in ("sleep", "burn")} == {
        (*above, "sleep"),
        (*above, "burn"),
    }
