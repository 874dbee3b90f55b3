"""IPython and Jupyter: `%load_ext otel_asyncprof.ipython`, then `%%asyncprof` as the first line of a cell.

The cell itself is left to IPython, which runs it as it would without the line: `await` works, on its own loop.
"""

import argparse
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .cli.messages import Style, duration_text
from .cli.tables import stack_lines
from .cli.values import rate
from .errors import ProfilerUnavailable
from .testing import CapturedProfile, capture

if TYPE_CHECKING:
    from .formats.process_profile import TimedSample

_LINE = "%%asyncprof"
_ROOT = "InteractiveShell.run_code"  # what runs the statements of a cell
_SHELL = "InteractiveShell.run_cell_async"  # what does everything about a cell
_SHOWN = 5


def load_ipython_extension(shell: Any) -> None:
    """Called by %load_ext."""
    profiled = _ProfiledCells()
    shell.input_transformers_cleanup.append(_without_line)
    shell.events.register("pre_run_cell", profiled.begin)
    shell.events.register("post_run_cell", profiled.end)
    shell.asyncprof_cells = profiled


def unload_ipython_extension(shell: Any) -> None:
    """Called by %unload_ext."""
    profiled = shell.asyncprof_cells
    shell.input_transformers_cleanup.remove(_without_line)
    shell.events.unregister("pre_run_cell", profiled.begin)
    shell.events.unregister("post_run_cell", profiled.end)


def _without_line(lines: list[str]) -> list[str]:
    """A cell without our line; a comment keeps the numbers of the others."""
    if lines and _is_ours(lines[0]):
        return [f"# {lines[0]}", *lines[1:]]
    return lines


# Where IPython asks itself whether a cell is complete, it does without this: a comment alone would be.
_without_line.has_side_effects = True  # type: ignore[attr-defined]


def _is_ours(line: str) -> bool:
    return line.split()[:1] == [_LINE]


class _BadLine(Exception):
    """What is wrong with the arguments."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _BadLine(f"{message}\n{self.format_usage()}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_LINE, add_help=False)
    parser.add_argument("-r", "--rate", type=rate, default=100, metavar="HZ")
    parser.add_argument("-n", type=int, default=_SHOWN, metavar="NUMBER", help="show so many stacks")
    parser.add_argument("-o", "--output", metavar="FILE", help="also write .html, .jsonl, .pprof and others")
    return parser


class _ProfiledCells:
    """Profiles each cell that begins with our line, from before its first statement until it has ended."""

    def __init__(self) -> None:
        self._running: AbstractContextManager[CapturedProfile] | None = None
        self._profile: CapturedProfile
        self._chosen: argparse.Namespace
        self._others: frozenset[int] = frozenset()  # threads that were there before the cell: the kernel's own

    def begin(self, info: Any) -> None:
        """Before a cell runs."""
        first = (info.raw_cell or "").lstrip().partition("\n")[0]
        if not _is_ours(first) or self._running is not None:
            return
        try:
            self._chosen = _parser().parse_args(shlex.split(first)[1:])
            own = threading.get_ident()
            self._others = frozenset(thread.ident or 0 for thread in threading.enumerate()) - {own}
            running = capture(rate=self._chosen.rate, timeline=True)
            self._profile = running.__enter__()
            self._running = running
        except (_BadLine, ValueError, ProfilerUnavailable) as error:
            print(f"{_LINE}: the cell runs without a profile: {error}", file=sys.stderr)

    def end(self, result: Any) -> None:
        """After a cell has run, well or not."""
        running, self._running = self._running, None
        if running is None:
            return
        running.__exit__(None, None, None)
        for line in _lines(self._profile, self._chosen.n, self._others):
            print(line)
        if self._chosen.output:
            _write(self._profile, self._chosen.output)


def _lines(profile: CapturedProfile, n_stacks: int, left_out: frozenset[int]) -> list[str]:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

    from .analysis.findings import Findings
    from .analysis.split import text_of
    from .formats.process_profile import process_profiles

    processes = [
        replace(process, samples=tuple(_of_cell(process.samples, left_out)))
        for process in process_profiles(map(ProfilesData.FromString, profile.requests))
    ]
    findings = Findings(processes, [])
    cpu = duration_text(sum(sample.cpu_ns for sample in findings.samples))
    seconds = duration_text(profile.stats.elapsed_seconds * 1e9)
    head = f"asyncprof: {seconds}, {findings.n_observations} samples, CPU {cpu}"
    split = text_of(findings.split())
    return [f"{head}; {split}" if split else head, *stack_lines(findings.stacks()[:n_stacks], Style(sys.stdout))]


def _of_cell(samples: "Iterable[TimedSample]", left_out: frozenset[int]) -> "Iterator[TimedSample]":
    """What the cell did: without IPython's own frames and work, and without its loop that waits for events."""
    for timed in samples:
        sample, functions = timed.sample, timed.sample.functions
        begin = max((index + 1 for index, name in enumerate(functions) if name == _ROOT), default=0)
        waits = sample.task_name is None and sample.state == "waiting" and sample.thread_id == threading.get_ident()
        if sample.thread_id not in left_out and (begin or not (waits or _SHELL in functions)):
            yield replace(timed, sample=replace(sample, frames=sample.frames[begin:] or sample.frames))


def _write(profile: CapturedProfile, name: str) -> None:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

    from .cli.messages import Failure
    from .cli.output import Output
    from .formats.recording import Recording

    try:
        output = Output.of_file(name)
        output.check()
        output.write(Recording([ProfilesData.FromString(request) for request in profile.requests]))
        print(f"asyncprof: written {Path(name)}")
    except (Failure, OSError) as error:
        print(f"asyncprof: {error}", file=sys.stderr)
