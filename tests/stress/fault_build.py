"""The package with an extension whose reads can be made to fail: built in .build/, once for all Pythons."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from native.headers import headers_for

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
HERE = Path(__file__).parent
BUILDS = ROOT / ".build" / "faults"
SOURCES = [
    *sorted((ROOT / "ext").rglob("*.c")),
    HERE / "fault_injection.c",
    HERE / "allocation_count.c",
    HERE / "memory_churn.c",
]
FLAGS = [
    *("-std=c11", "-g", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra", "-Werror"),
    *("-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030b0000", "-DSAFE_COPY_FAULT_INJECTION", f"-I{ROOT / 'ext'}"),
]
KINDS = {
    "plain": ["-O2"],
    "sanitized": ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"],
}
COUNTED = [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc", "aligned_alloc", "free")]


def sanitizer_environment() -> dict[str, str]:
    """What a Python needs to load the sanitized extension; the signals are ours, Python's leaks no concern."""
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    options = "handle_segv=0:handle_sigbus=0:allow_user_segv_handler=1:detect_leaks=0"
    return {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": options,
        "UBSAN_OPTIONS": "handle_segv=0:handle_sigbus=0",
    }


@functools.cache
def build(kind: str) -> Path:
    """A folder for PYTHONPATH: our Python files, and the extension of this kind."""
    headers = sorted((ROOT / "ext").rglob("*.h"))
    content = hashlib.sha256(repr([FLAGS, KINDS[kind], *(path.read_bytes() for path in [*SOURCES, *headers])]).encode())
    folder = BUILDS / f"{kind}-{content.hexdigest()[:16]}"
    BUILDS.mkdir(parents=True, exist_ok=True)
    with (BUILDS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test files want it too, in other processes
        if not folder.exists():
            for old in BUILDS.glob(f"{kind}-*"):
                shutil.rmtree(old)
            with tempfile.TemporaryDirectory(dir=BUILDS) as work:
                link(kind, Path(work))
                (Path(work) / "package").rename(folder)
    return folder


def link(kind: str, work: Path) -> None:
    """Compiles all that belongs to the extension and puts it beside links to the package's files."""
    include = f"-I{headers_for(sys.executable)}"

    def compile_one(source: Path) -> Path:
        target = work / f"{source.parent.name}-{source.stem}.o"
        subprocess.run(["gcc", *FLAGS, *KINDS[kind], include, "-c", source, "-o", target], check=True)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, SOURCES))
    package = work / "package" / "otel_asyncprof"
    package.mkdir(parents=True)
    library = package / "_native.abi3.so"
    subprocess.run(["gcc", "-shared", *KINDS[kind], *COUNTED, *objects, "-o", library, "-pthread", "-ldl"], check=True)
    for path in (ROOT / "otel_asyncprof").iterdir():
        if path.suffix != ".so" and path.name != "__pycache__":
            (package / path.name).symlink_to(path)


def environment(kind: str) -> dict[str, str]:
    """For a Python that uses the test build."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))}
    paths = os.pathsep.join(map(str, (build(kind), TESTS, HERE)))
    return kept | {"PYTHONPATH": paths} | (sanitizer_environment() if kind == "sanitized" else {})
