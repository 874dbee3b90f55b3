"""An exporter for looking at: the heaviest stacks of each interval, one line each."""

import sys
from collections.abc import Sequence
from typing import TextIO

from ..formats.stack_sample import StackSample, stack_samples
from ._base import ProfileExporter, ProfileExportResult

MAX_STACKS = 10
IMPORTS = "<frozen importlib."  # frames that Python leaves out of its tracebacks, too
SHOWN_FIRST, SHOWN_LAST = 6, 14  # functions of one stack, which would fill the screen where modules import modules


class ConsoleProfileExporter(ProfileExporter):
    """Writes to the given stream, or to what sys.stdout is at that time."""

    def __init__(self, out: TextIO | None = None, *, max_stacks: int = MAX_STACKS) -> None:
        self._out = out
        self._max_stacks = max_stacks

    def export(self, requests: Sequence[bytes]) -> ProfileExportResult:
        out = self._out or sys.stdout
        # A daemon has none, and a helper process of multiprocessing closes it: nobody is there to look at anything.
        if out is None or out.closed:
            self.last_error = "there is no standard output"
            return ProfileExportResult.FAILURE
        self.last_error = ""
        out.write(summary(stack_samples(requests), self._max_stacks))
        out.flush()
        return ProfileExportResult.SUCCESS


def summary(samples: Sequence[StackSample], max_stacks: int = MAX_STACKS) -> str:
    """Totals, then the stacks with the most wall time, the heaviest first."""
    cpu, wall = sum(sample.cpu_ns for sample in samples), sum(sample.wall_ns for sample in samples)
    lines = [f"profile: {len(samples)} stacks, cpu {_seconds(cpu)}, wall {_seconds(wall)}"]
    heaviest = sorted(samples, key=lambda sample: (-sample.wall_ns, -sample.cpu_ns))
    lines += [_line(sample) for sample in heaviest[:max_stacks]]
    return "\n".join(lines) + "\n"


def _line(sample: StackSample) -> str:
    parts = [f"  wall {_seconds(sample.wall_ns)}", f"cpu {_seconds(sample.cpu_ns)}", sample.state or "-"]
    if sample.task_name:
        parts.append(f"task {sample.task_name}")
    if sample.span_id:
        parts.append(f"trace {sample.trace_id:032x} span {sample.span_id:016x}")
    above = [frame.function for frame in sample.frames[:-1] if not frame.file.startswith(IMPORTS)]
    stack = " > ".join(_shown([*above, *sample.functions[-1:]]))
    if sample.frames:
        stack += f" ({sample.frames[-1].file}:{sample.frames[-1].line})"
    return "  ".join([*parts, stack])


def _shown(functions: Sequence[str]) -> Sequence[str]:
    """Both ends of what is too long to be read."""
    left_out = len(functions) - SHOWN_FIRST - SHOWN_LAST
    if left_out < 2:
        return functions
    return [*functions[:SHOWN_FIRST], f"… {left_out} more …", *functions[-SHOWN_LAST:]]


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e9:.3f} s"
