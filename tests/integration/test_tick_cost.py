"""What a tick costs, counted in instructions: the same on a quiet machine and on a loaded one."""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "instructions.py"


@pytest.fixture(scope="module")
def instructions() -> ModuleType:
    """The benchmark, as a module."""
    spec = importlib.util.spec_from_file_location("instructions", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_tick_takes_as_many_instructions_as_expected(instructions: ModuleType, tmp_path: Path) -> None:
    """Tasks seen for the first time, unchanged, changed and at rest, and idle threads: all near the stored counts."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed (Debian: valgrind)")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("counts are kept of Pythons that come with headers")
    expected = instructions.read_expected()[instructions.VERSION]
    found = instructions.differences(instructions.measure(tmp_path), expected)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("counted", "named"),
    [
        ({"tasks": 10990, "rest": 650}, []),
        ({"tasks": 11010, "rest": 450}, ["tasks: expected 10000, counted 11010 (+10.1%)"]),
        ({"tasks": 8990, "rest": 450}, ["tasks: expected 10000, counted 8990 (-10.1%)"]),
        ({"tasks": 10000, "rest": 651}, ["rest: expected 450, counted 651 (+44.7%)"]),
        ({"tasks": 10000}, ["rest: expected 450, counted None"]),
        ({"tasks": 10000, "rest": 450, "threads": 5}, ["threads: expected None, counted 5"]),
    ],
)
def test_a_count_beyond_the_tolerance_is_named(
    instructions: ModuleType, counted: dict[str, int], named: list[str]
) -> None:
    """Cheaper than expected is a difference too: the expected count then guards nothing any more."""
    found = instructions.differences(counted, {"tasks": 10000, "rest": 450})
    assert [line for line in found if ": expected " in line] == named
    assert ("--renew" in "".join(found)) == bool(named)
