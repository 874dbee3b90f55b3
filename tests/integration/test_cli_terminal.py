"""On a terminal: colours where they are wanted, a live line that goes away, and Ctrl-C that is the program's."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import pexpect
import pytest
from integration.command_line import COMMAND, TIMEOUT_SECONDS, environment
from recordings import recording

from otel_asyncprof.formats.recording import to_recording

MAX_INTERRUPTS = 20
BOLD = "\x1b[1m"
INTERRUPTED = """
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted once", flush=True)
    time.sleep(0.3)  # a second interrupt would end this
    raise SystemExit(9)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A recorded file."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(to_recording(recording()))
    return str(path)


def heed_interrupts() -> None:
    """As in a shell's foreground: whoever starts these tests in the background has interrupts ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def on_terminal(*arguments: str, **variables: str) -> pexpect.spawn:
    """A command on a terminal of its own."""
    variables = {"TERM": "xterm-256color", "COLUMNS": "200", **variables}
    return pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *arguments],
        env=environment(**variables),
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
        preexec_fn=heed_interrupts,
    )


def output_of(*arguments: str, **variables: str) -> str:
    """All that a command writes to its terminal."""
    with on_terminal(*arguments, **variables) as terminal:
        terminal.expect(pexpect.EOF)
        terminal.wait()
        assert terminal.exitstatus == 0
        return str(terminal.before)


def test_a_terminal_gets_colours_and_a_live_line_that_goes_away(file: str) -> None:
    """While the file is read there is one line, and nothing of it is left afterwards."""
    output = output_of("report", file)
    assert BOLD in output
    live, erased, report = output.partition("\r\x1b[K" + BOLD)
    assert live == f"\r\x1b[Kotel-asyncprof: reading {file} …"
    assert erased
    assert report.startswith("10.0 s: 11 samples")


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_there_are_no_colours_where_they_are_not_wanted(file: str, variables: dict[str, str]) -> None:
    """By NO_COLOR, or on a terminal that cannot show them."""
    output = output_of("report", file, **variables)
    assert re.findall(r"\x1b\[[0-9;]*m", output) == []
    assert "Slowest requests" in output


def test_ctrl_c_reaches_the_program_once_and_the_summary_still_comes(tmp_path: Path) -> None:
    """The terminal sends it to both; how the program ends is its own business."""
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    arguments = ("run", "--no-instrument", "-o", str(tmp_path / "a.jsonl"), str(program))
    with on_terminal(*arguments) as terminal:
        terminal.expect_exact("ready")
        terminal.sendintr()
        terminal.expect_exact("interrupted once")
        terminal.expect_exact("otel-asyncprof: written")
        terminal.expect(pexpect.EOF)
        terminal.wait()
        assert terminal.exitstatus == 9


def test_the_program_has_the_terminal(tmp_path: Path) -> None:
    """It can ask and is answered, as if nothing stood between."""
    code = "import os, sys; print(os.isatty(0), os.isatty(1), os.isatty(2), 'hello ' + input('name? '))"
    command = ("run", "-q", "--no-instrument", "-o", str(tmp_path / "a.jsonl"), "--", sys.executable, "-c", code)
    with on_terminal(*command) as terminal:
        terminal.expect_exact("name? ")
        terminal.sendline("you")
        terminal.expect_exact("True True True hello you")
        terminal.expect(pexpect.EOF)


def test_ctrl_c_ends_our_own_commands_with_130(tmp_path: Path) -> None:
    """Here while a recording is read from a pipe that nobody writes to."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with on_terminal("report", str(pipe)) as terminal:
        terminal.expect_exact("reading")
        for _ in range(MAX_INTERRUPTS):  # one that comes just before Python waits for the pipe is not noticed there
            terminal.sendintr()
            if terminal.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=5) == 0:
                break
        terminal.wait()
        assert terminal.exitstatus == 130
        assert "Traceback" not in str(terminal.before)
