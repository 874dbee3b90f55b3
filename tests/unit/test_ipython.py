"""`%%asyncprof` in a shell that runs cells as Jupyter's kernel does: on an event loop that is running."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from otel_asyncprof import ipython

SLOW = "import asyncio\nasync def slow():\n    await asyncio.sleep(0.3)\n"


@pytest.fixture
def run() -> Iterator[Callable[..., list[Any]]]:
    """Runs cells one after the other; their results."""
    shell = InteractiveShell()
    ipython.load_ipython_extension(shell)

    async def run_all(cells: tuple[str, ...]) -> list[Any]:
        shell.user_ns["loop"] = asyncio.get_running_loop()
        results = []
        for cell in cells:
            result = await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))
            shell.events.trigger("post_run_cell", result)
            results.append(result.result)
        return results

    yield lambda *cells: asyncio.run(run_all(cells))
    ipython.unload_ipython_extension(shell)
    assert ipython._without_line not in shell.input_transformers_cleanup


def test_a_cell_is_profiled_on_the_loop_that_runs_it(run: Callable[..., list[Any]], capsys, tmp_path: Path) -> None:
    """Its value, its strings and its line numbers are what they are without the line."""
    file = tmp_path / "cell.speedscope.json"
    body = "await slow()\ntext = '''a\n  b'''\n(asyncio.get_running_loop() is loop, text)"
    cell = f"%%asyncprof -r 200 -n 20 -o '{file}'\n{body}"
    _, result = run(SLOW, cell)
    assert result == (True, "a\n  b")
    out = capsys.readouterr().out.splitlines()
    assert out[1].startswith("asyncprof: ")
    assert "samples, CPU" in out[1]
    printed = " ".join(line.split()[0] for line in out if line)  # there may be threads of the tests' own beside it
    assert "<module> slow sleep" in printed
    assert "InteractiveShell" not in printed
    names = {frame["name"] for frame in json.loads(file.read_text())["shared"]["frames"]}
    assert "slow" in names


def test_on_a_terminal_the_cell_goes_on_behind_the_line_until_an_empty_one() -> None:
    """As every cell does that begins with %%."""
    shell = InteractiveShell()
    ipython.load_ipython_extension(shell)
    typed = ["%%asyncprof -n 1", "%%asyncprof -n 1\nx = 1", "%%asyncprof -n 1\nx = 1\n\n"]
    answers = [shell.check_complete(text)[0] for text in typed]
    ipython.unload_ipython_extension(shell)
    assert answers == ["incomplete", "incomplete", "complete"]


def test_what_ipython_does_itself_is_left_out(run: Callable[..., list[Any]], capsys) -> None:
    """To compile a long cell, say."""
    run(f"%%asyncprof -r 1000 -n 100\nx = [{'1 + 1,' * 20_000}]")
    assert "InteractiveShell" not in capsys.readouterr().out


def test_a_cell_without_the_line_is_left_alone(run: Callable[..., list[Any]], capsys) -> None:
    """Also when the line stands elsewhere."""
    assert run("x = '''\n%%asyncprof\n'''\nx") == ["\n%%asyncprof\n"]
    assert "asyncprof:" not in capsys.readouterr().out


def test_a_cell_that_fails_is_told_about_all_the_same(run: Callable[..., list[Any]], capsys) -> None:
    """And the next one can be profiled."""
    run("%%asyncprof\n1 / 0", "%%asyncprof\n1")
    out = capsys.readouterr().out
    assert "ZeroDivisionError" in out
    assert out.count("asyncprof: ") == 2


def test_bad_arguments_are_one_message_and_the_cell_runs(run: Callable[..., list[Any]], capsys) -> None:
    """The work in the cell is not lost by a typing error."""
    assert run("%%asyncprof -r 99999\n1 + 1") == [2]
    err = capsys.readouterr().err
    assert "the cell runs without a profile: argument -r/--rate: '99999' is no rate from 1 to 1000" in err


def test_the_package_itself_is_the_extension() -> None:
    """%load_ext otel_asyncprof, and %unload_ext."""
    shell = InteractiveShell()
    before = list(shell.input_transformers_cleanup)
    assert shell.extension_manager.load_extension("otel_asyncprof") is None
    assert ipython._without_line in shell.input_transformers_cleanup
    assert shell.extension_manager.unload_extension("otel_asyncprof") is None
    assert shell.input_transformers_cleanup == before
