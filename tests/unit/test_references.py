"""One binary serves all versions, also those in which None is counted like any other object."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from reader_helpers import prepare

from otel_asyncprof import _native

EXTENSION = Path(__file__).resolve().parents[2] / "ext"


def test_no_macro_is_used_that_depends_on_the_headers_idea_of_immortality() -> None:
    """Compiled with headers of 3.12 or later, such a macro takes a reference to None too few in 3.11."""
    macro = re.compile(r"\bPy_RETURN_(NONE|TRUE|FALSE|NOTIMPLEMENTED)\b;")
    sources = sorted(EXTENSION.rglob("*.c"))
    assert len(sources) > 20
    assert [path.name for path in sources if macro.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal")
def test_calls_that_return_none_leave_its_count_alone() -> None:
    """A hundred thousand of them would end the process."""
    prepare()
    before = sys.getrefcount(None)
    for _ in range(1000):
        _native.read_link(0)
        _native.read_view(object())
        _native.stop()
    assert abs(sys.getrefcount(None) - before) < 100
