"""The structure that docs/how-it-works.md describes, held against the sources."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "otel_asyncprof"
EXTENSION = ROOT / "ext"
MAX_LINES = 400

C_FILES = sorted(EXTENSION.rglob("*.[ch]"))
PYTHON_FILES = sorted(PACKAGE.rglob("*.py"))
OUR_FILES = [
    *C_FILES,
    *sorted(
        path
        for folder in ("otel_asyncprof", "tests", "examples", "benchmarks", ".ci")
        for path in (ROOT / folder).rglob("*.py")
    ),
    *sorted((ROOT / "tests").rglob("*.[ch]")),
]

# A C file may include its own header and those of its own and lower levels; within a level the order is acyclic.
C_LEVELS = (
    "drop arena budget window os clock cpython/layout raw_frame span_view protobuf intern_table safe_copy_guarded",
    "safe_copy signals signal_origin reading exit_signals line_table string_table asyncio_table",
    "read_object plain_span span_link stack_table",
    "threads unwind coroutine greenlets anyio_groups tasks task_set task_list awaiters awaited code_table",
    "stitch thread_records",
    "otlp_encode otlp_dictionary sample_groups",
    "tick",
    "sampler self_check libraries caller_stack",
    "thread_context",
    "span_facts span_objects span_context task_switch exit_functions module",
)
PYTHON_UNITS = {
    "module",
    "span_context",
    "span_objects",
    "span_facts",
    "self_check",
    "caller_stack",
    "libraries",
    "task_switch",
    "exit_functions",
}  # run under the GIL, never by the sampler thread
PURE_UNITS = {
    "budget",
    "window",
    "line_table",
    "stitch",
    "stack_table",
    "otlp_encode",
    "otlp_dictionary",
    "protobuf",
}  # data in, data out

# A module may import those before it. A name stands for the module or for the whole subpackage.
PYTHON_LEVELS = (
    "_version errors environment_variables _native _platform _fork _collection",
    "_options _probe _otlp_options",
    "_declarative",
    "_config _greenlets",
    "_libraries",
    "_callers",
    "formats export _runtime_context span_processor",
    "_anchors _copy_method _self_check _metrics _exit _features _thread_context",
    "_profiler",
    "__init__",
    "testing instrumentor asgi",
    "analysis",
    "viewer",
    "demo cli",
    "testing_session ipython",
    "__main__ pytest_plugin",
)
PRIVATE_OTEL = {"export/_sdk_transport.py", "_runtime_context.py"}


def short(path: Path) -> str:
    """A path as messages and rules name it."""
    return path.relative_to(ROOT).as_posix()


def without_comments(source: str) -> str:
    """C source without comments and string contents."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", source, flags=re.DOTALL)


def includes(path: Path) -> list[str]:
    """The project's headers that a C file includes, without the suffix, relative to ext/."""
    found = []
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), flags=re.MULTILINE):
        beside, from_root = path.parent / name, EXTENSION / name
        target = beside if beside.exists() else from_root
        found.append(target.resolve().relative_to(EXTENSION).with_suffix("").as_posix())
    return found


def c_level(unit: str) -> int:
    """The level of a C unit; implementations for one processor, system or version stand beside their interface."""
    for pattern, interface in ((r"safe_copy_\w+", "safe_copy"), (r"cpython/\w+", "cpython/layout"), (r"os/\w+", "os")):
        if re.fullmatch(pattern, unit) and unit != "safe_copy_guarded":
            unit = interface
    if re.fullmatch(r"read_\w+", unit):
        unit = "read_object"
    if re.fullmatch(r"tick_\w+", unit):
        unit = "tick"
    for number, level in enumerate(C_LEVELS):
        if unit in level.split():
            return number
    raise AssertionError(f"ext/{unit} has no level: give it one in C_LEVELS and in docs/how-it-works.md")


@pytest.mark.parametrize("path", C_FILES, ids=short)
def test_a_c_file_includes_only_its_own_and_lower_levels(path: Path) -> None:
    """Nothing that reads memory knows of what is made out of it."""
    own = path.relative_to(EXTENSION).with_suffix("").as_posix()
    assert {unit for unit in includes(path) if c_level(unit) > c_level(own)} == set()


def test_headers_include_each_other_without_cycles() -> None:
    """Every header can be understood after those that it includes."""
    graph = {
        path.relative_to(EXTENSION).with_suffix("").as_posix(): set(includes(path))
        for path in C_FILES
        if path.suffix == ".h"
    }
    while ends := {unit for unit, needed in graph.items() if not needed & graph.keys()}:
        graph = {unit: needed for unit, needed in graph.items() if unit not in ends}
    assert graph == {}


def test_only_units_that_run_under_the_gil_know_python() -> None:
    """The sampler owns no thread state: whatever it runs must not be able to call the C API."""
    found = {path.stem for path in C_FILES if re.search(r"#\s*include\s*<Python\.h>", path.read_text())}
    assert found <= PYTHON_UNITS
    reaching = {path.stem for path in C_FILES if PYTHON_UNITS & set(includes(path))}
    assert reaching <= PYTHON_UNITS


def test_versions_are_tested_in_the_layout_tables_alone() -> None:
    """A new CPython is a new table."""
    for path in C_FILES:
        if path.parent.name != "cpython":
            assert "PY_VERSION_HEX" not in without_comments(path.read_text()), short(path)
            assert "PY_MINOR_VERSION" not in without_comments(path.read_text()), short(path)


def test_python_asks_for_the_version_in_one_file_alone() -> None:
    """What differs, others ask the layout or asyncio itself for."""
    asking = re.compile(r"\bversion_info\b|\bhexversion\b|\bpython_version_tuple\b")
    assert {short(path) for path in PYTHON_FILES if asking.search(path.read_text())} == {"otel_asyncprof/_platform.py"}


def test_pure_units_have_no_clock_no_lock_and_no_memory_of_others() -> None:
    """They are tested on data alone."""
    forbidden = {"clock", "safe_copy", "signals", "os/os", "read_object"}
    for path in C_FILES:
        if path.with_suffix("").name in PURE_UNITS:
            assert forbidden & set(includes(path)) == set(), short(path)
            assert "pthread" not in without_comments(path.read_text()), short(path)


def test_interpreter_memory_is_read_through_safe_copy_alone() -> None:
    """No unit turns an address of the interpreter into a pointer and follows it."""
    readers = {
        "unwind",
        "coroutine",
        "tasks",
        "awaiters",
        "threads",
        "greenlets",
        "anyio_groups",
        "span_link",
        "read_object",
        "read_dict",
        "code_table",
    }
    for path in C_FILES:
        if path.with_suffix("").name in readers:
            assert re.findall(r"\*\s*\([^()]*\*\s*\)\s*\(?u?intptr_t", without_comments(path.read_text())) == [], short(
                path
            )


@pytest.mark.parametrize("path", OUR_FILES, ids=short)
def test_a_file_is_short(path: Path) -> None:
    """A longer file holds two things."""
    assert len(path.read_text().splitlines()) <= MAX_LINES


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """The absolute names that a Python file imports, with lines; a name out of a module counts as one below it."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            yield from ((".".join([*base, alias.name]), node.lineno) for alias in node.names)


def python_unit(parts: tuple[str, ...]) -> str:
    """The name by which PYTHON_LEVELS knows a module given as parts below the package."""
    return parts[0] if parts else "__init__"


def python_level(unit: str) -> int:
    """The level of a module or subpackage."""
    for number, level in enumerate(PYTHON_LEVELS):
        if unit in level.split():
            return number
    raise AssertionError(
        f"otel_asyncprof/{unit} has no level: give it one in PYTHON_LEVELS and in docs/how-it-works.md"
    )


@pytest.mark.parametrize("path", PYTHON_FILES, ids=short)
def test_a_python_module_imports_only_its_own_and_lower_levels(path: Path) -> None:
    """Configuration knows no exporter, an exporter no profiler, the profiler no command."""
    own = python_unit(path.relative_to(PACKAGE).with_suffix("").parts)
    for name, line in imports(path):
        parts = tuple(name.split("."))
        if parts[0] == "otel_asyncprof" and (len(parts) > 1):
            is_module = any(parts[1] in level.split() for level in PYTHON_LEVELS)
            target = python_unit(parts[1:] if is_module else ())
            assert python_level(target) <= python_level(own), f"{short(path)}:{line} imports {name}"


@pytest.mark.parametrize("path", PYTHON_FILES, ids=short)
def test_private_names_of_opentelemetry_are_used_in_two_files_alone(path: Path) -> None:
    """Private names change without notice: one adapter and the runtime context know them."""
    if path.relative_to(PACKAGE).as_posix() in PRIVATE_OTEL:
        return
    private = [
        f"{short(path)}:{line} {name}"
        for name, line in imports(path)
        if name.startswith("opentelemetry.") and any(part.startswith("_") for part in name.split("."))
    ]
    assert private == []


FOREIGN = re.compile(r"(asyncio|threading|contextvars|uvloop)\b")


@pytest.mark.parametrize("path", PYTHON_FILES, ids=short)
def test_nothing_samples_in_python(path: Path) -> None:
    """Stacks come from the native sampler alone."""
    forbidden = {"_current_frames", "_current_exceptions", "settrace", "setprofile", "settrace_all_threads"}
    nodes = ast.walk(ast.parse(path.read_text()))
    assert [node.lineno for node in nodes if isinstance(node, ast.Attribute) and node.attr in forbidden] == []


@pytest.mark.parametrize("path", PYTHON_FILES, ids=short)
def test_nothing_patches_asyncio(path: Path) -> None:
    """Nothing of asyncio, threading or contextvars is assigned to or wrapped."""
    patched = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign):
            patched += [target for target in node.targets if isinstance(target, ast.Attribute)]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Attribute):
            patched.append(node.target)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"setattr", "wrap_function_wrapper"}:
            patched += node.args[:1]
    assert [ast.unparse(target) for target in patched if FOREIGN.match(ast.unparse(target))] == []


def test_the_docs_name_every_c_file() -> None:
    """Whoever adds a file says what it is for."""
    documented = (ROOT / "docs" / "how-it-works.md").read_text()
    units = {path.stem for path in C_FILES}
    assert {unit for unit in units if not re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", documented)} == set()
