"""The tables of ext/cpython against the headers and the debug information of every CPython that is installed."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXT = HERE.parent.parent / "ext"
MINORS = (11, 12, 13, 14, 15)
SECONDS = 60

# What no header offers, and where the debug information has it: field -> C expression.
WITHOUT_HEADER = {
    "deque_left_block": "(long)&((dequeobject *)0)->leftblock",
    "deque_left_index": "(long)&((dequeobject *)0)->leftindex",
    "deque_block_items": "(long)&((struct BLOCK *)0)->data",
    "deque_block_length": "sizeof(((struct BLOCK *)0)->data) / sizeof(void *)",
    "partial_function": "(long)&((partialobject *)0)->fn",
    "partial_args": "(long)&((partialobject *)0)->args",
    "wrapper_inner": "(long)&((PyAsyncGenASend *)0)->ags_gen",
    "hamt_array_items": "(long)&((PyHamtNode_Array *)0)->a_array",
    "hamt_collision_items": "(long)&((PyHamtNode_Collision *)0)->c_array",
    "hamt_collision_size": "(long)&((PyHamtNode_Collision *)0)->ob_base.ob_size",
}
# One field stands for five types of awaitables, and in 3.11 for the holder of the running loop.
ALSO_WRAPPER_INNER = {
    "athrow": "(long)&((PyAsyncGenAThrow *)0)->agt_gen",
    "coroutine wrapper": "(long)&((PyCoroWrapper *)0)->cw_coroutine",
    "anext": "(long)&((anextawaitableobject *)0)->wrapped",
}
IN_ASYNCIO = {
    "future_loop": "(long)&((FutureObj *)0)->fut_loop",
    "future_callback0": "(long)&((FutureObj *)0)->fut_callback0",
    "future_callbacks": "(long)&((FutureObj *)0)->fut_callbacks",
    "future_state": "(long)&((FutureObj *)0)->fut_state",
    "future_pending": "(long)STATE_PENDING",
    "task_waiter": "(long)&((TaskObj *)0)->task_fut_waiter",
    "task_coroutine": "(long)&((TaskObj *)0)->task_coro",
    "task_name": "(long)&((TaskObj *)0)->task_name",
    "task_context": "(long)&((TaskObj *)0)->task_context",
    "task_size": "(long)&((TaskObj *)0)->task_context + sizeof(void *)",
}
ONLY_IN_3_11 = {
    "hamt_bitmap": "(long)&((PyHamtNode_Bitmap *)0)->b_bitmap",
    "hamt_bitmap_items": "(long)&((PyHamtNode_Bitmap *)0)->b_array",
}
FROM_3_14 = {
    "future_awaited_by": "(long)&((FutureObj *)0)->fut_awaited_by",
    "future_awaited_by_is_set": "(long)&((TaskObj *)0)->awaited_by_is_set",
    "task_node": "(long)&((TaskObj *)0)->task_node",
    "task_size": "sizeof(TaskObj)",
}
NOT_STORED = {"awaited_depth"}  # how the compiler lays the stack out; from 3.14 on tests on live frames tell
FUTURE_ITERATOR = "(long)&((futureiterobject *)0)->future"
LOOP_HOLDER = "(long)&((PyRunningLoopHolder *)0)->rl_loop"


@dataclass(frozen=True)
class Interpreter:
    """An installed CPython with what it says of itself."""

    version: str
    minor: int
    include: str
    core: str  # the file of the interpreter itself: an executable or a library
    asyncio: str  # the file of _asyncio: an extension module, or core

    @property
    def table(self) -> Path:
        """Our table for it."""
        return EXT / "cpython" / f"v3_{self.minor}.c"


QUESTION = """
import os, platform, sys, sysconfig, _asyncio
about = sysconfig.get_config_var
assert sys.implementation.name == "cpython" and not about("Py_GIL_DISABLED")
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
core = os.path.join(about("LIBDIR"), about("INSTSONAME")) if about("Py_ENABLE_SHARED") else sys.executable
print(platform.python_version(), sys.version_info[1], sysconfig.get_path("include"), sep="\\n")
print(os.path.realpath(core), getattr(_asyncio, "__file__", os.path.realpath(core)), sep="\\n")
"""


def ask(python: str) -> Interpreter | None:
    """What an executable is; None when it is none that the tables describe."""
    done = subprocess.run([python, "-c", QUESTION], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        return None
    version, minor, include, core, asyncio = done.stdout.splitlines()
    return Interpreter(version, int(minor), include, core, asyncio) if int(minor) in MINORS else None


def installed() -> list[Interpreter]:
    """The interpreter that runs this, those that are named, those on PATH and those of pyenv; each once."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [sys.executable, *os.environ.get("EXTRA_PYTHONS", "").split()]
    candidates += [found for minor in MINORS if (found := shutil.which(f"python3.{minor}"))]
    candidates += [str(path) for minor in MINORS for path in sorted(root.glob(f"versions/3.{minor}.*/bin/python"))]
    known = {found.include: found for candidate in reversed(candidates) if (found := ask(candidate))}
    return sorted(known.values(), key=lambda interpreter: interpreter.minor)


INTERPRETERS = installed()
every_interpreter = pytest.mark.parametrize("python", INTERPRETERS, ids=lambda found: found.version)
with_published_table = pytest.mark.parametrize(
    "python", [python for python in INTERPRETERS if python.minor >= 13], ids=lambda found: found.version
)


def layout_fields() -> set[str]:
    """The names of all fields of struct layout."""
    source = (EXT / "cpython" / "layout.h").read_text(encoding="utf-8")
    body = re.search(r"struct layout \{(.*?)\n\};", source, re.DOTALL)
    assert body
    declarations = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.DOTALL).split(";")
    return {name for line in declarations for name in re.findall(r"(\w+)(?:\[\d\])?\s*(?:,|$)", line.strip())}


def compile_and_run(python: Interpreter, source: Path, table: Path, program: Path) -> dict[str, list[tuple[int, int]]]:
    """Field -> pairs of what the headers and what the table says."""
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-DNDEBUG", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
    folders = [f"-I{python.include}", f"-I{EXT}", f"-I{EXT / 'cpython'}", f'-DTABLE_FILE="{table}"']
    built = subprocess.run(["gcc", *flags, *folders, source, "-o", program], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    lines = subprocess.run([program], capture_output=True, text=True, check=True, timeout=SECONDS).stdout.splitlines()
    pairs: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        name, header, ours = line.rsplit(" ", 2)
        pairs.setdefault(name.partition("[")[0], []).append((int(header), int(ours)))
    return pairs


def wrong(pairs: dict[str, list[tuple[int, int]]]) -> set[str]:
    """The fields in which header and table differ."""
    return {name for name, values in pairs.items() if any(header != ours for header, ours in values)}


def read_at_run_time(minor: int) -> set[str]:
    """What 3.14 and later say of themselves: patch releases of one version differ in it."""
    if minor < 14:
        return set()
    source = (EXT / "cpython" / "debug_offsets.c").read_text(encoding="utf-8")
    derived = source[source.index("static bool derive(") :]
    asyncio = (EXT / "cpython" / "asyncio_offsets.c").read_text(encoding="utf-8")
    return published(minor) | set(re.findall(r"layout\.(\w+) = ", derived + asyncio))


def published(minor: int) -> set[str]:
    """The fields that _Py_DebugOffsets of a version gives us."""
    source = (EXT / "cpython" / "debug_offsets.c").read_text(encoding="utf-8")
    rows = re.search(rf" in_3_{minor}\[\] = \{{(.*?)\n\}};", source, re.DOTALL)
    assert rows
    return set(re.findall(r"\{\d+, \w+, &layout\.(\w+), ", rows.group(1)))


def without_header(minor: int) -> dict[str, str]:
    """What only debug information tells: field -> expression."""
    return WITHOUT_HEADER | in_asyncio(minor) | (ONLY_IN_3_11 if minor == 11 else {})


def in_asyncio(minor: int) -> dict[str, str]:
    """The same of asyncio's C module."""
    return IN_ASYNCIO | (FROM_3_14 if minor >= 14 else {})


@functools.cache
def table_values(minor: int) -> dict[str, int]:
    """Field -> constant, as written in our table."""
    text = (EXT / "cpython" / f"v3_{minor}.c").read_text(encoding="utf-8")
    return {name: int(value) for name, value in re.findall(r"\.(\w+) = (-?\d+)[,\s]", text)}


def evaluate(binary: str, expressions: dict[str, str]) -> dict[str, int]:
    """What gdb makes of C expressions with the types of a binary; empty when it has no debug information."""
    commands = [part for text in expressions.values() for part in ("-ex", f'printf "value %ld\\n", {text}')]
    options = ["-batch", "-nx", "-iex", "set debuginfod enabled off"]
    done = subprocess.run(["gdb", *options, *commands, binary], capture_output=True, text=True, timeout=SECONDS)
    if "No symbol table is loaded" in done.stderr or "(No debugging symbols found" in done.stdout:
        return {}
    values = re.findall(r"^value (-?\d+)$", done.stdout, re.MULTILINE)
    assert len(values) == len(expressions), done.stderr
    return dict(zip(expressions, map(int, values), strict=True))


@pytest.mark.skipif(
    not Path(sysconfig.get_path("include"), "Python.h").exists(), reason="this Python came without headers"
)
def test_the_interpreter_that_runs_the_tests_is_among_those_looked_at() -> None:
    """The others are looked at where they are installed."""
    assert platform.python_version() in {python.version for python in INTERPRETERS}


@every_interpreter
def test_every_field_that_headers_offer_is_what_the_table_says(python: Interpreter, tmp_path: Path) -> None:
    """By offsetof and the enums themselves."""
    pairs = compile_and_run(python, HERE / "layout_of_headers.c", python.table, tmp_path / "program")
    assert {name: pairs[name] for name in wrong(pairs) - read_at_run_time(python.minor)} == {}


@every_interpreter
def test_every_field_is_in_a_header_or_listed_as_in_none(python: Interpreter, tmp_path: Path) -> None:
    """A field that is added to struct layout cannot be forgotten here."""
    pairs = compile_and_run(python, HERE / "layout_of_headers.c", python.table, tmp_path / "program")
    in_headers = pairs.keys() & layout_fields()
    nowhere = NOT_STORED if python.minor >= 14 else set()
    assert layout_fields() == in_headers | without_header(python.minor).keys() | nowhere
    assert in_headers & without_header(python.minor).keys() == set()


@every_interpreter
@pytest.mark.parametrize("field", ["frame_previous", "state_created", "type_flag_managed_dict", "contextvar_hash"])
def test_one_wrong_constant_is_found(python: Interpreter, field: str, tmp_path: Path) -> None:
    """And nothing else is blamed."""
    planted = tmp_path / "planted.c"
    text, count = re.subn(rf"\.{field} = ([^,]+),", rf".{field} = (\1) + 8,", python.table.read_text(encoding="utf-8"))
    assert count == 1
    planted.write_text(text, encoding="utf-8")
    found = wrong(compile_and_run(python, HERE / "layout_of_headers.c", planted, tmp_path / "program"))
    assert found - (read_at_run_time(python.minor) - {field}) == {field}


@every_interpreter
def test_any_wrong_constant_is_found(python: Interpreter, tmp_path: Path) -> None:
    """A table with every constant changed is wrong in every field that a header offers."""
    planted = tmp_path / "planted.c"
    text = re.sub(r"\.(\w+) = ([^,{}]+),", r".\1 = (\2) ^ 1,", python.table.read_text(encoding="utf-8"))
    text = re.sub(r"\{(\d+), (\d+)\}", r"{\1 ^ 1, \2 ^ 1}", text)
    planted.write_text(text, encoding="utf-8")
    pairs = compile_and_run(python, HERE / "layout_of_headers.c", planted, tmp_path / "program")
    assert wrong(pairs) == pairs.keys() & layout_fields()


@every_interpreter
def test_fields_in_no_header_are_what_the_debug_information_says(python: Interpreter) -> None:
    """Where it is missing, the self-check at start covers tasks, deques, partials, awaitables and hash tries."""
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    core = WITHOUT_HEADER | (ONLY_IN_3_11 if python.minor == 11 else {}) | ALSO_WRAPPER_INNER
    holder = {"loop holder": LOOP_HOLDER} if python.minor == 11 else {}
    of_core = evaluate(python.core, core)
    of_asyncio = evaluate(python.asyncio, in_asyncio(python.minor) | {"future iterator": FUTURE_ITERATOR} | holder)
    if not of_core or not of_asyncio:
        pytest.skip(f"{python.core} has no debug information")
    ours = table_values(python.minor)
    inner = dict.fromkeys([*ALSO_WRAPPER_INNER, "future iterator", *holder], ours["wrapper_inner"])
    assert of_core | of_asyncio == {name: ours[name] for name in without_header(python.minor)} | inner


@with_published_table
def test_positions_in_the_published_table_are_those_of_its_header(python: Interpreter, tmp_path: Path) -> None:
    """From 3.13 on the interpreter says much of its layout itself."""
    pairs = compile_and_run(python, HERE / "debug_offsets_of_headers.c", python.table, tmp_path / "program")
    assert {name: pairs[name] for name in wrong(pairs)} == {}
    fields = published(python.minor) | {"gil", "gil_locked", "gil_holder", "object_size", "object_type"}
    fields |= {"COOKIE", "VERSION", "FREE_THREADED", "offset of the table in _PyRuntime"}
    assert pairs.keys() == fields | ({"path_size", "length of a path"} if python.minor >= 14 else set())


@every_interpreter
def test_what_readers_take_from_a_copy_lies_inside_it(python: Interpreter) -> None:
    """The sizes of their buffers, beside the largest offsets of each table."""
    header = (EXT / "cpython" / "layout.h").read_text(encoding="utf-8")
    room = {name: int(size) for name, size in re.findall(r"#define MAX_(\w+)_BYTES (\d+)", header)}
    ours = table_values(python.minor)
    assert ours["thread_size"] <= room["THREAD_STATE"]
    assert ours["frame_localsplus"] <= room["FRAME_HEAD"]
    assert ours["code_instructions"] <= room["CODE_HEAD"]
    assert max(ours["str_compact_data"], ours["str_state"] + 8) <= room["STR_HEAD"]
    frame = {name: value for name, value in ours.items() if name.startswith("frame_") and name != "frame_localsplus"}
    assert max(frame.values()) < ours["frame_localsplus"]
    code = {name: value for name, value in ours.items() if name.startswith("code_") and name != "code_instructions"}
    assert max(code.values()) < ours["code_instructions"]
