"""Recorded memory of every supported Python, read by a plain C program under sanitizers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from native.tape_builds import READERS, RECORDED, SANITIZED, TAPE_SOURCES, TAPES, THREADS, build, unpacked
from native.tapes.recorder import build_recorder, portable, programs_for, record

RECORDINGS = sorted(path.name.removesuffix(".expected") for path in RECORDED.glob("*.expected"))
LIMIT_SECONDS = 120


@pytest.fixture(scope="session")
def replay(shared_folder: Path) -> Path:
    """The program that says what a tick sees in a tape."""
    return build("replay", [*READERS, *TAPE_SOURCES, TAPES / "replay.c"], SANITIZED, shared_folder / "sanitized")


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension that records, for this Python."""
    return build_recorder(sys.executable, tmp_path_factory.mktemp("recorder"))


def replayed(replay: Path, tape: Path) -> str:
    """What a tick says of a tape."""
    done = subprocess.run([replay, tape], capture_output=True, timeout=LIMIT_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return portable(done.stdout.decode())


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_tick_has_exactly_its_frames_tasks_and_links(name: str, replay: Path, tmp_path: Path) -> None:
    """The readers give the same of memory that was recorded once, and nothing is dropped."""
    expected = (RECORDED / f"{name}.expected").read_text(encoding="utf-8")
    assert replayed(replay, unpacked(name, tmp_path)) == expected


def test_every_supported_python_is_recorded_in_every_program() -> None:
    """And nothing else is."""
    assert sorted(f"3.{minor}-{program}" for minor in (11, 12, 13, 14) for program in programs_for(minor)) == RECORDINGS


def without_library_lines(text: str) -> str:
    """The lines of the standard library move from one patch release to the next."""
    return re.sub(r"((?:asyncio/\w+|threading)\.py):\d+", r"\1", text)


@pytest.mark.parametrize("program", programs_for(sys.version_info.minor))
def test_a_tape_taken_now_says_what_the_recorded_one_says(
    program: str, recorder: Path, replay: Path, tmp_path: Path
) -> None:
    """The program itself and Python confirm each stack; the same comes out where no Python is."""
    tape = tmp_path / "tape"
    text = portable(record(sys.executable, recorder, program, tape))
    expected = (RECORDED / f"3.{sys.version_info.minor}-{program}.expected").read_text(encoding="utf-8")
    assert without_library_lines(text) == without_library_lines(expected)
    assert replayed(replay, tape) == text


def test_a_tape_that_lacks_a_byte_says_something_else(replay: Path, tmp_path: Path) -> None:
    """The comparison can fail: each byte of a tape is one that was read."""
    tape = unpacked("3.12-constructs", tmp_path)
    whole = replayed(replay, tape)
    content = tape.read_bytes()
    assert content.count(b"by_async_for") == 1  # the name of a function, which is its task's too
    tape.write_bytes(content.replace(b"by_async_for", b"by_another_n"))
    assert replayed(replay, tape) == whole.replace("by_async_for", "by_another_n")


def test_no_data_is_raced_for_between_sampling_collecting_asking_and_publishing(
    shared_folder: Path, tmp_path: Path
) -> None:
    """Under the thread sanitizer; a span that changes while it is read is never mixed with another."""
    races = build("races", [*READERS, *TAPE_SOURCES, TAPES / "races.c"], THREADS, shared_folder / "threads")
    # The sanitizer needs its addresses where the kernel's randomisation may put other things.
    command = ["setarch", "-R", races, unpacked("3.12-spans", tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert (done.stderr, done.stdout, done.returncode) == ("", "passed\n", 0)
