"""The pure C parts, tested in C under the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.without_python

HERE = Path(__file__).parent
EXT = HERE.parent.parent / "ext"
TABLES = ["drop.c", "arena.c", "intern_table.c", "string_table.c", "stack_table.c"]
READERS = [
    *(f"cpython/{path.name}" for path in sorted((EXT / "cpython").glob("*.c"))),
    *("drop.c", "os/linux.c", "read_object.c", "read_dict.c"),
    *("coroutine.c", "greenlets.c", "tasks.c", "task_list.c", "threads.c", "unwind.c"),
    *(path.name for path in sorted(EXT.glob("safe_copy*.c"))),
]
PROGRAMS = {
    "test_arena": ["arena.c"],
    "test_budget": ["budget.c"],
    "test_window": ["window.c"],
    "test_line_table": ["line_table.c"],
    "test_intern_table": ["intern_table.c"],
    "test_stack_table": TABLES,
    "test_protobuf": ["protobuf.c"],
    "test_debug_offsets": ["cpython/layout.c"],
    "test_asyncio_offsets": [],
    "test_laid_by_hand": READERS,
    "test_torn_stack": [*(name for name in READERS if name.startswith("cpython/")), "drop.c", "unwind.c"],
    "test_stitch": [*TABLES, "stitch.c"],
    "test_otlp_encode": [*TABLES, "protobuf.c", "sample_groups.c", "otlp_dictionary.c", "otlp_encode.c"],
}
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{EXT}"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
WRAPS = [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc", "free")]
TESTS = [
    (program, name)
    for program in PROGRAMS
    for name in re.findall(r"^TEST\((\w+)\)", (HERE / f"{program}.c").read_text(encoding="utf-8"), re.MULTILINE)
]


@functools.cache
def build_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that lives as long as the test run."""
    return tempfile.TemporaryDirectory(prefix="native_tables_")


@functools.cache
def build(program: str) -> Path:
    """Compiles one test program, once per test run."""
    target = Path(build_folder().name) / program
    sources = [HERE / f"{program}.c", HERE / "allocations.c", *(EXT / name for name in PROGRAMS[program])]
    command = ["gcc", *FLAGS, *SANITIZERS, *WRAPS, "-o", str(target), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.parametrize(("program", "name"), TESTS)
def test_c_test_ends_cleanly(program: str, name: str) -> None:
    """Each TEST of a program ends with status 0 and without a word from a sanitizer."""
    done = subprocess.run([build(program), name], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
