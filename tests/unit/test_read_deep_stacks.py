"""Stacks that are deep, far down in a file, not yet begun, in an import or below a loop, as Python shows them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from reader_helpers import compared, event_loop, look, prepare, seen

MAX_THREAD_FRAMES = 4096
FAR_LINE = 40_500


def recursive(depth: int) -> None:
    if depth:
        recursive(depth - 1)
    else:
        look()


@contextmanager
def recursion_limit(limit: int) -> Iterator[None]:
    """Room for deep calls."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def test_recursion_900_deep_is_whole() -> None:
    """Over several chunks of the data stack."""
    with recursion_limit(2000):
        assert compared(lambda: recursive(900))[1:] == ["recursive"] * 901


def wide(depth: int) -> None:
    a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q = range(16)
    if depth:
        [wide][a](depth - 1 + sum([a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q]) - 120)
    else:
        look()


def test_recursion_through_many_large_frames_is_whole() -> None:
    """More bytes than one chunk holds, several times over."""
    with recursion_limit(3000):
        assert compared(lambda: wide(2500))[1:] == ["wide"] * 2501


def test_a_stack_deeper_than_the_bound_keeps_its_leaves() -> None:
    """The root end becomes one frame."""
    prepare()
    seen.clear()
    with recursion_limit(7000):
        recursive(5000)
    ((read, said),) = seen
    assert read == [("<truncated>", "", 0), *said[-(MAX_THREAD_FRAMES - 1) :]]


class Cycle:
    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        look()


def with_cell() -> Callable[[], int]:
    value = 1
    return lambda: value


def collect_before_a_function_begins() -> None:
    before = gc.get_threshold()
    gc.disable()
    Cycle()
    gc.set_threshold(1)
    gc.enable()
    try:
        with_cell()
    finally:
        gc.set_threshold(*before)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later versions collect garbage between instructions only")
def test_a_function_that_has_not_begun_is_not_shown() -> None:
    """Its first variable was being made when the collector ran."""
    gc.collect()
    assert compared(collect_before_a_function_begins) == ["collect_before_a_function_begins", "Cycle.__del__"]


def test_lines_far_down_in_a_file_are_exact() -> None:
    """Beyond 40,000."""
    source = "\n" * FAR_LINE + "def far():\n    x = [1,\n" + "\n" * 300 + "    look()]\n" + "\n" * 500 + "    look()\n"
    names: dict[str, Any] = {"look": look}
    exec(compile(source, "far.py", "exec"), names)
    prepare()
    seen.clear()
    names["far"]()
    assert [read == said for read, said in seen] == [True, True]
    assert [read[-2] for read, _ in seen] == [("far", "far.py", FAR_LINE + 303), ("far", "far.py", FAR_LINE + 804)]


def test_the_stack_below_a_task_step_holds_the_loop_and_the_coroutines() -> None:
    """Generator-owned frames lie outside the data stack."""

    async def numbers() -> Any:
        look()
        yield 1

    async def main() -> None:
        async for _ in numbers():
            pass

    with event_loop() as loop:
        below = compared(lambda: loop.run_until_complete(main()))
    assert "Handle._run" in below
    assert [name.rpartition(".")[2] for name in below[-2:]] == ["main", "numbers"]


def test_a_stack_read_inside_an_import_is_what_python_says(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen modules have code objects like any other."""
    (tmp_path / "looking.py").write_text("import builtins\nbuiltins.look()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.look", look, raising=False)
    below = compared(lambda: __import__("looking"))
    assert below[-1] == "<module>"
    monkeypatch.delitem(sys.modules, "looking")
