"""Subinterpreters, as mod_wsgi has them, share what an extension keeps: one that is refused must not touch that."""

from __future__ import annotations

import importlib
import sys

import pytest
from stress.interposed import run_program

MODULE = "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters"


def has_subinterpreters() -> bool:
    """Not every build of CPython has the module."""
    try:
        importlib.import_module(MODULE)
    except ImportError:
        return False
    return True


@pytest.mark.skipif(not has_subinterpreters(), reason="this build of CPython makes no subinterpreters")
@pytest.mark.parametrize("order", ["first", "later"])
def test_a_start_in_a_subinterpreter_is_refused_and_costs_the_main_one_nothing(order: str) -> None:
    """One line; the main interpreter starts afterwards, or goes on to be looked at."""
    report = run_program("interpreters.py", order, MODULE)
    refused = "otel_asyncprof does not profile this process: "
    assert report == {
        "said": refused + "subinterpreters are not supported; start it in the main interpreter\n",
        "seen": True,
        "complete": True,
        "stderr": report["stderr"],
    }
