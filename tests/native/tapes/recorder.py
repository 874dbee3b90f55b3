"""Records the tapes of one Python: python tests/native/tapes/recorder.py /path/to/python …

Each program of programs/ runs under that Python with an extension that writes down what its readers read. Beside a tape stands
what a tick says of it, which the program and Python itself have confirmed.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
EXT = ROOT / "ext"
PROGRAMS = sorted(path.stem for path in (HERE / "programs").glob("*.py"))
# In place of the reading of live memory and of the operating system.
TAPE_SOURCES = [HERE / name for name in ("pages.c", "tape.c", "look.c", "os_of_tape.c")]
REPLACED = {EXT / "os" / "linux.c", *EXT.glob("safe_copy*.c")}
PYTHON_SOURCES = {EXT / name for name in ("module.c", "self_check.c", "span_context.c", "span_facts.c", "span_objects.c")}
SOURCES = sorted({*EXT.rglob("*.c")} - REPLACED)
READER_SOURCES = sorted(set(SOURCES) - PYTHON_SOURCES)
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{EXT}", f"-I{HERE}"]


def compile_one(source: Path, flags: list[str], folder: Path) -> Path:
    """The object of a source."""
    target = folder / f"{source.parent.name}-{source.stem}.o"
    subprocess.run(["gcc", *flags, "-c", source, "-o", target], check=True)
    return target


def link(sources: list[Path], flags: list[str], target: Path, *more: str) -> None:
    """Compiles on two processors, and links."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda source: compile_one(source, flags, Path(folder)), sources))
        subprocess.run(["gcc", *flags, *more, *objects, "-o", target], check=True)


def build_recorder(python: str, folder: Path) -> Path:
    """The extension that records."""
    library = folder / "recorder.so"
    include = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True, check=True
    ).stdout.strip()
    flags = [*FLAGS, "-O1", "-Wno-maybe-uninitialized", "-fPIC", "-fvisibility=hidden", "-DPy_LIMITED_API=0x030b0000", f"-I{include}"]
    link([*SOURCES, *TAPE_SOURCES, HERE / "recorder.c"], flags, library, "-shared")
    return library


def record(python: str, library: Path, program: str, tape: Path) -> str:
    """Runs a program that takes a tape; what a tick says of it."""
    path = HERE / "programs" / f"{program}.py"
    environment = os.environ | {
        "TAPE_RECORDER": str(library),
        "TAPE_FILE": str(tape),
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, ROOT / "tests", ROOT))),
    }
    # The program's file has the same name wherever this tree stands.
    code = f"import sys; exec(compile(open(sys.argv[1]).read(), '{program}.py', 'exec'))"
    run = subprocess.run([python, "-c", code, path], env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def portable(text: str) -> str:
    """Without the place where the standard library was installed."""
    return re.sub(r"@[^@>|]*/lib/python3\.\d+/", "@", text)


def version_of(python: str) -> tuple[int, int]:
    """Of an interpreter."""
    code = "import sys; print(*sys.version_info[:2])"
    major, minor = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return int(major), int(minor)


def programs_for(version: tuple[int, int]) -> list[str]:
    """Eager tasks came with 3.12."""
    return [program for program in PROGRAMS if program != "eager" or version >= (3, 12)]


def main(pythons: list[str]) -> None:
    """Writes all tapes of these interpreters anew."""
    for python in pythons:
        version = version_of(python)
        with tempfile.TemporaryDirectory() as folder:
            library = build_recorder(python, Path(folder))
            for program in programs_for(version):
                tape = Path(folder) / program
                text = record(python, library, program, tape)
                name = HERE / "recorded" / f"{version[0]}.{version[1]}-{program}"
                name.with_name(name.name + ".tape.gz").write_bytes(gzip.compress(tape.read_bytes(), 9, mtime=0))
                name.with_name(name.name + ".expected").write_text(portable(text), encoding="utf-8")
                print(name.name, tape.stat().st_size, "bytes,", len(text.splitlines()), "lines")


if __name__ == "__main__":
    main(sys.argv[1:])
