"""Line tables: the C decoder gives the same lines as CPython's own."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from ctypes import c_int
from pathlib import Path
from types import CodeType

import pytest
from native_tables import library

CODE_UNIT_BYTES = 2
MODULES = 400
STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
GROUPS = 8


def standard_library_files() -> list[Path]:
    """The first several hundred modules of the standard library that need no package of their own."""
    files = [path for path in sorted(STANDARD_LIBRARY.rglob("*.py")) if "site-packages" not in path.parts]
    return [path for path in files if not {"test", "tests", "lib2to3"} & set(path.parts)][:MODULES]


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """A code object and all that it holds."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


def c_lines(code: CodeType) -> list[int]:
    """The line of every instruction, read by the C core; 0 = none."""
    count = len(code.co_code) // CODE_UNIT_BYTES
    lines = (c_int * count)()
    library().find_lines(code.co_linetable, len(code.co_linetable), code.co_firstlineno, lines, count, CODE_UNIT_BYTES)
    return list(lines)


def check(code: CodeType) -> int:
    """Compares one code object with both of CPython's answers; returns how many instructions it has."""
    found = c_lines(code)
    assert found == [line or 0 for line, *_ in code.co_positions()], code
    by_range = [0] * len(found)
    for start, end, line in code.co_lines():
        by_range[start // CODE_UNIT_BYTES : end // CODE_UNIT_BYTES] = [line or 0] * ((end - start) // CODE_UNIT_BYTES)
    assert found == by_range, code
    return len(found)


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_instruction_of_the_standard_library_has_the_line_that_cpython_gives_it(group: int) -> None:
    """Hundreds of modules, every code object in them: co_positions() and co_lines() agree with us."""
    files = standard_library_files()[group::GROUPS]
    instructions = 0
    for path in files:
        module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        instructions += sum(check(code) for code in code_objects(module))
    assert len(files) == MODULES // GROUPS
    assert instructions > 20_000


def test_a_deep_line_number_and_long_gaps_are_exact() -> None:
    """Line deltas that take several bytes, forth and back."""
    source = "x = (1,\n" + "\n" * 100_000 + "y()\n" + "\n" * 5_000 + ", z)\n" + "\n" * 70 + "w"
    assert check(compile(source, "gaps", "exec")) > 5


def test_an_instruction_that_has_not_begun_is_on_the_first_line() -> None:
    """f_lasti is negative before the first instruction."""
    code = check.__code__
    assert library().line_table_find(code.co_linetable, len(code.co_linetable), code.co_firstlineno, -1) == (
        code.co_firstlineno
    )


def test_an_instruction_past_the_end_has_no_line() -> None:
    """The offset behind the last instruction belongs to no entry."""
    code = check.__code__
    table = code.co_linetable
    assert library().line_table_find(table, len(table), code.co_firstlineno, len(code.co_code) - 2) > 0
    assert library().line_table_find(table, len(table), code.co_firstlineno, len(code.co_code)) == 0
