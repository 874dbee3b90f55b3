"""The profile of a whole test session in one process, with a look at each single test."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import span_processor
from ._config import SAMPLE_ATTRIBUTES, ProfilerConfig
from ._profiler import Profiler
from .analysis.holding import longest_hold
from .analysis.places import is_library
from .cli.messages import duration_text, plain
from .cli.recorder import RecordingExporter, SpanRecorder
from .cli.spool import Spool
from .errors import ProfilerUnavailable
from .export._base import ProfileExportResult
from .formats.process_profile import process_profiles

if TYPE_CHECKING:
    from .cli.output import Output

_logger = logging.getLogger(__name__)

_CPU_BUDGET = 0.5  # of a core: tests want to see, not to save
_SHOWN_STACKS = 3


class _SessionExporter(RecordingExporter):
    """Records everything, and remembers what belongs to the test that runs."""

    def __init__(self, spool: Spool, spans: SpanRecorder) -> None:
        super().__init__(spool, spans, None, running_only=False)
        self.of_test: list[bytes] = []

    def export(self, requests: Sequence[bytes]) -> ProfileExportResult:
        self.of_test += requests
        return super().export(requests)


class SessionProfile:
    """Runs from the first test of a process to the last."""

    def __init__(self, folder: str, rate: int) -> None:
        self._period_ns = int(1e9 / rate)
        spool, spans = Spool(folder), SpanRecorder()
        span_processor.accompany(spans)
        self._exporter = _SessionExporter(spool, spans)
        config = ProfilerConfig(rate=rate, timeline=True, sample_attributes=SAMPLE_ATTRIBUTES, cpu_budget=_CPU_BUDGET)
        self._profiler = Profiler(config, exporter=self._exporter)
        try:
            self._profiler.start_or_raise()
        except ProfilerUnavailable as refusal:
            spool.add_note(str(refusal))

    def begin_test(self) -> None:
        """What was seen until now belongs to no test."""
        self._profiler.force_flush()
        self._exporter.of_test = []

    def complaint(self, max_block: float) -> str:
        """What is wrong with the test since its begin: a task that has held the loop for over max_block seconds."""
        from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

        self._profiler.force_flush()
        messages = map(ProfilesData.FromString, self._exporter.of_test)
        hold = longest_hold(process_profiles(messages), self._period_ns)
        if hold is None or hold.least_ns <= max_block * 1e9:
            return ""
        own = [frame for frame in hold.frames if not is_library(frame.file)] or hold.frames
        stack = "".join(f"\n  {plain(str(frame))}" for frame in own)
        held, allowed = duration_text(hold.least_ns), duration_text(max_block * 1e9)
        who = plain(hold.task_name)
        return f"{who} held the event loop for at least {held} ({allowed} are allowed), at last in{stack}"

    def end(self) -> None:
        """Writes what is left."""
        self._profiler.shutdown()
        span_processor.accompany(None)


def summarize(folder: str, output: "Output | None") -> list[str]:
    """Lines about all processes of a session; writes the report when there is to be one."""
    from .analysis.findings import Findings
    from .analysis.split import text_of

    spool = Spool(folder)
    recording = spool.read()
    lines = [f"process {pid} was not profiled: {reason}" for pid, reason in spool.notes()]
    findings = Findings.of(recording)
    cpu = duration_text(sum(sample.cpu_ns for sample in findings.samples))
    n_spans = len(findings.spans.by_id)
    parts = [f"{findings.n_observations:,} samples", f"{n_spans:,} spans", f"CPU {cpu}", text_of(findings.split())]
    lines.append(", ".join(filter(None, parts)))
    for stack in sorted(findings.stacks(), key=lambda stack: -stack.cpu_ns)[:_SHOWN_STACKS]:
        if stack.frames and stack.cpu_ns:
            lines.append(f"CPU {duration_text(stack.cpu_ns):>8}  {plain(str(stack.frames[-1]))}")
    if output is not None:
        try:
            output.write(recording)
            lines.append(f"report: {output.path}")
        except OSError as error:
            lines.append(f"{output.path} cannot be written: {error.strerror}")
    return lines
