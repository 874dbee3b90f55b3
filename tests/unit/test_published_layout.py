"""The constants of a table against what the interpreter that runs this publishes, where no header is at hand."""

from __future__ import annotations

import ctypes
import re
import struct
import sys
from pathlib import Path

import pytest

EXT = Path(__file__).resolve().parents[2] / "ext" / "cpython"
MINOR = sys.version_info.minor
pytestmark = pytest.mark.skipif(MINOR < 14, reason="older tables are held against headers")


def constants() -> dict[str, int]:
    """Field -> constant of the table of this version."""
    text = (EXT / f"v3_{MINOR}.c").read_text(encoding="utf-8")
    return {name: int(value) for name, value in re.findall(r"\.(\w+) = (-?\d+)[,\s]", text)}


def published() -> dict[str, int]:
    """Field -> what _Py_DebugOffsets says."""
    source = (EXT / "debug_offsets.c").read_text(encoding="utf-8")
    rows = re.search(rf" in_3_{MINOR}\[\] = \{{(.*?)\n\}};", source, re.DOTALL)
    assert rows
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    found = re.findall(r"\{(\d+), \w+, &layout\.(\w+), ", rows.group(1))
    return {name: struct.unpack("<Q", ctypes.string_at(runtime + int(at), 8))[0] for at, name in found}


def test_the_table_says_what_this_interpreter_publishes() -> None:
    """Another patch release may differ, and is read right all the same: what is published wins."""
    said = published()
    assert len(said) > 30
    if sys.version_info[:3] == (3, 14, 0):
        table = constants()
        assert {name: table[name] for name in said} == said
