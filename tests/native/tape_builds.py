"""Programs over recorded memory, built with sanitizers; what one test process of a run has compiled serves all."""

from __future__ import annotations

import fcntl
import gzip
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXT = HERE.parents[1] / "ext"
TAPES = HERE / "tapes"
FUZZ = HERE / "fuzz"
RECORDED = TAPES / "recorded"
VERSION = "{}.{}".format(*sys.version_info[:2])

PYTHON_UNITS = {
    *("caller_stack.c", "libraries.c", "module.c", "self_check.c", "span_context.c", "span_facts.c", "span_objects.c"),
    "task_switch.c",
    "exit_functions.c",
}
# In their place tapes have a memory and an operating system of their own.
LIVE_UNITS = {
    EXT / "os" / "linux.c",
    EXT / "signals.c",
    EXT / "signal_origin.c",
    EXT / "reading.c",
    *EXT.glob("safe_copy*.c"),
}
READERS = sorted(path for path in {*EXT.rglob("*.c")} - LIVE_UNITS if path.name not in PYTHON_UNITS)
TAPE_SOURCES = [
    TAPES / name for name in ("pages.c", "tape.c", "look.c", "os_of_tape.c", "memory_of_tape.c", "no_signals.c")
]
STRICT = [
    "-std=c11",
    "-D_GNU_SOURCE",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pthread",
    *(f"-I{folder}" for folder in (EXT, TAPES, FUZZ, HERE)),
]
# At -O1, and with sanitizers, gcc loses sight of what has been set.
SANITIZED = [
    *(
        "-O1",
        "-Wno-maybe-uninitialized",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
    )
]
THREADS = ["-O1", "-Wno-maybe-uninitialized", "-fsanitize=thread", "-fno-sanitize-recover=all"]


def gcc(*arguments: str | Path) -> None:
    """Compiles or links without a warning."""
    done = subprocess.run(["gcc", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compiled(source: Path, flags: list[str], folder: Path) -> Path:
    """The object of a source."""
    target = folder / f"{source.parent.name}-{source.stem}.o"
    if not target.exists():
        gcc(*STRICT, *flags, "-c", source, "-o", target)
    return target


def build(name: str, sources: list[Path], flags: list[str], folder: Path) -> Path:
    """A program of these sources; with the same folder and flags what has been compiled is used again."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    with locked(folder), ThreadPoolExecutor(2) as pool:
        if not program.exists():
            objects = list(pool.map(lambda source: compiled(source, flags, folder), sources))
            gcc(*flags, "-pthread", *objects, "-o", program)
    return program


def unpacked(name: str, folder: Path) -> Path:
    """A recorded tape as the programs read it."""
    tape = folder / f"{name}.tape"
    tape.write_bytes(gzip.decompress((RECORDED / f"{name}.tape.gz").read_bytes()))
    return tape
