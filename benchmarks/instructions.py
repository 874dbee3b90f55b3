"""Instructions of one tick over a fixed program, counted by callgrind: a guard that needs no quiet machine.

usage: python benchmarks/instructions.py [--renew] [--keep FOLDER]

Prints the counts beside the expected ones; status 1 when they differ. --renew makes the counts of this Python the
expected ones; --keep leaves callgrind's files for callgrind_annotate.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXPECTED = Path(__file__).with_suffix(".json")
PROGRAM = Path(__file__).with_name("instructions_program.py")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
TOLERANCE = 0.10  # of the expected count: what another compiler or C library may change
SLACK = 200  # instructions, for the states in which a look takes hardly any
LIMIT_SECONDS = 300
# As setup.py builds the extension.
COMPILER = ["gcc", "-std=c11", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-D_GNU_SOURCE"]
LIMITED_API = "-DPy_LIMITED_API=0x030b0000"
ADVICE = """To see where: python benchmarks/instructions.py --keep FOLDER, once with the change and once without, then
callgrind_annotate --inclusive=yes on both folders' files of that state (the line "Trigger" names it).
If the new cost is meant, better or worse: python benchmarks/instructions.py --renew, on every supported Python."""

Counts = dict[str, int]


def build(folder: Path) -> Path:
    """The whole extension and the driver of its ticks, as one library."""
    library = folder / "instructions.so"
    sources = [*sorted((ROOT / "ext").rglob("*.c")), Path(__file__).with_suffix(".c")]
    includes = [f"-I{ROOT / 'ext'}", f"-I{sysconfig.get_path('include')}"]
    command = [*COMPILER, LIMITED_API, *includes, *map(str, sources), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True, timeout=LIMIT_SECONDS)
    return library


def measure(folder: Path) -> Counts:
    """State of the program -> instructions of one look at it. Callgrind's files stay in the folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
    out = folder / "callgrind.out"
    callgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    command = [*callgrind, sys.executable, str(PROGRAM), str(build(folder))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{PROGRAM.name} ended with {done.returncode} under callgrind:\n{done.stderr}")
    looks = json.loads(done.stdout)
    counts = {}
    for file in sorted(folder.glob("callgrind.out.*")):
        text = file.read_text(encoding="utf-8")
        state = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if state and total:
            counts[state[1]] = int(total[1]) // looks[state[1]]
    return counts


def read_expected() -> dict[str, Counts]:
    """Version of Python -> its counts."""
    expected: dict[str, Counts] = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    return expected


def differences(measured: Counts, expected: Counts) -> list[str]:
    """One line for each state whose count is not the expected one, and what to do about it."""
    found = []
    for state in sorted(measured.keys() | expected.keys()):
        count, before = measured.get(state), expected.get(state)
        if count is None or before is None:
            found.append(f"{state}: expected {before}, counted {count}")
        elif abs(count - before) > max(TOLERANCE * before, SLACK):
            found.append(f"{state}: expected {before}, counted {count} ({count / before - 1:+.1%})")
    if found:
        found.append(ADVICE)
    return found


def renew(measured: Counts) -> None:
    """The counts of this Python become the expected ones; those of others stay."""
    expected = read_expected() | {VERSION: measured}
    EXPECTED.write_text(json.dumps(expected, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        measured = measure(folder)
    if arguments.renew:
        renew(measured)
    expected = read_expected().get(VERSION, {})
    print(f"| CPython {VERSION}: instructions of one look | counted | expected |\n|---|---:|---:|")
    for state, count in measured.items():
        print(f"| {state} | {count:,} | {expected.get(state, 0):,} |")
    found = differences(measured, expected)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
