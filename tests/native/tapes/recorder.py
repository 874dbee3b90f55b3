"""Records the tapes of interpreters anew: PYTHONPATH=tests python tests/native/tapes/recorder.py /path/to/python …

Each program of programs/ runs with an extension that writes down what its readers read. Beside a tape stands what a
tick says of it, which the program itself and Python have confirmed. The interpreters need what the tests need.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from native.headers import ask, headers_for
from native.tape_builds import EXT, LIVE_UNITS, RECORDED, TAPE_SOURCES, TAPES, build

TESTS = TAPES.parents[1]
ROOT = TESTS.parent
PROGRAMS = sorted(path.stem for path in (TAPES / "programs").glob("*.py"))
SOURCES = [*sorted({*EXT.rglob("*.c")} - LIVE_UNITS), *TAPE_SOURCES, TAPES / "recorder.c"]
LIMIT_SECONDS = 120


def build_recorder(python: str, folder: Path) -> Path:
    """The extension that records."""
    include = headers_for(python)
    flags = ["-O0", "-fPIC", "-fvisibility=hidden", "-shared", "-DPy_LIMITED_API=0x030b0000", f"-I{include}"]
    sources = [path for path in SOURCES if path.name != "memory_of_tape.c"]
    return build("recorder.so", sources, flags, folder)


def record(python: str, library: Path, program: str, tape: Path) -> str:
    """Runs a program that takes a tape; what a tick says of it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | {
        "TAPE_RECORDER": str(library),
        "TAPE_FILE": str(tape),
        "PYTHONPATH": os.pathsep.join(map(str, (TAPES, TESTS, TESTS.parent))),
        "PYTHONUTF8": "1",
    }
    # The program's file has the same name wherever this tree stands.
    code = f"import sys; exec(compile(open(sys.argv[1]).read(), '{program}.py', 'exec'))"
    command = [python, "-c", code, str(TAPES / "programs" / f"{program}.py")]
    run = subprocess.run(command, env=environment, capture_output=True, timeout=LIMIT_SECONDS, check=False)
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode()


def portable(text: str) -> str:
    """Without the place where the standard library was installed."""
    return re.sub(r"@[^@>|]*/lib/python3\.\d+/", "@", text)


def programs_for(minor: int) -> list[str]:
    """Eager tasks came with 3.12."""
    return [program for program in PROGRAMS if program != "eager" or minor >= 12]


def main(pythons: list[str]) -> None:
    """Writes all tapes of these interpreters anew."""
    for python in pythons:
        minor = int(ask(python, "import sys; print(sys.version_info.minor)"))
        with tempfile.TemporaryDirectory() as folder:
            library = build_recorder(python, Path(folder))
            for program in programs_for(minor):
                tape = Path(folder) / program
                text = portable(record(python, library, program, tape))
                packed = gzip.compress(tape.read_bytes(), 9, mtime=0)
                (RECORDED / f"3.{minor}-{program}.tape.gz").write_bytes(packed)
                (RECORDED / f"3.{minor}-{program}.expected").write_text(text, encoding="utf-8")
                print(f"3.{minor}-{program}: {len(packed)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
