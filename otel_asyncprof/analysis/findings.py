"""The questions that the commands answer: which requests were slow, which queries, and who asked for them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..formats.process_profile import ProcessProfile, process_profiles
from ..formats.recording import Recording
from ..formats.stack_sample import Frame, StackSample
from .places import caller_in
from .spans import Span, Spans, read_spans
from .split import Links, Split, split_of

_LINE, _FILE, _FUNCTION = "code.line.number", "code.file.path", "code.function.name"


@dataclass(frozen=True)
class Caller:
    """Who asked: exactly known when the span carries it, else what its samples say."""

    frame: Frame
    is_exact: bool

    def __str__(self) -> str:
        return f"{self.frame.function} ({self.frame.file}:{self.frame.line})"


@dataclass(frozen=True)
class SlowSpan:
    """A span with its caller and its time."""

    span: Span
    request: Span
    caller: Caller | None
    split: Split  # with everything below it
    stack: tuple[Frame, ...]
    n_spans: int
    n_queries: int


@dataclass(frozen=True)
class Query:
    """All runs of one statement."""

    statement: str
    durations_ns: Sequence[int]  # ascending
    callers: Sequence[tuple[str, int]]  # caller -> runs, the most first; runs without a known caller are left out
    requests: Sequence[tuple[str, int]]  # name of the request's span -> runs
    most_in_one_request: int
    slowest: SlowSpan

    @property
    def total_ns(self) -> int:
        """The time of all runs together."""
        return sum(self.durations_ns)

    def percentile_ns(self, share: float) -> int:
        """The duration that this share of the runs does not exceed."""
        return percentile(self.durations_ns, share)


@dataclass(frozen=True)
class HotStack:
    """A stack with the time spent on it."""

    frames: tuple[Frame, ...]
    wall_ns: int
    cpu_ns: int
    split: Split
    n_linked: int  # of its samples


def percentile(ascending: Sequence[int], share: float) -> int:
    """The value that this share of the values does not exceed."""
    if not ascending:
        return 0
    rank = -(-len(ascending) * share // 1)  # the nearest rank
    return ascending[min(max(int(rank) - 1, 0), len(ascending) - 1)]


class Findings:
    """What a recording says, worked out when it is asked for."""

    def __init__(self, processes: Sequence[ProcessProfile], spans: Iterable[Span]) -> None:
        self.processes = processes
        self.spans = Spans(spans)

    @classmethod
    def of(cls, recording: Recording) -> "Findings":
        """IndexError, ValueError: the recording does not hold together."""
        return cls(process_profiles(recording.profiles), read_spans(recording.traces))

    @cached_property
    def samples(self) -> list[StackSample]:
        """The samples of all processes."""
        return [timed.sample for process in self.processes for timed in process.samples]

    @cached_property
    def links(self) -> Links:
        """The samples of each span."""
        return Links(self.samples)

    @cached_property
    def n_observations(self) -> int:
        """How often a stack was seen; without a timeline, how many different ones."""
        return sum(timed.n_observations for process in self.processes for timed in process.samples)

    @cached_property
    def n_linked(self) -> int:
        """Of these, how many are linked to a span."""
        timed_samples = [timed for process in self.processes for timed in process.samples]
        return sum(timed.n_observations for timed in timed_samples if timed.sample.span_id)

    @property
    def start_ns(self) -> int:
        """When the recording begins; 0 when nothing was recorded."""
        return min([*(process.start_ns for process in self.processes), *self._times("start_ns")], default=0)

    @property
    def end_ns(self) -> int:
        """When the recording ends."""
        return max([*(process.end_ns for process in self.processes), *self._times("end_ns")], default=0)

    def _times(self, name: str) -> list[int]:
        return [getattr(span, name) for span in self.spans.by_id.values()]

    def split(self) -> Split:
        """Of everything that was seen."""
        return split_of(self.samples)

    def slow_span(self, span: Span) -> SlowSpan:
        """A span with its caller and its time."""
        below = self.spans.tree(span)
        linked = self.links.below(span, self.spans)
        own = self.links.of(span).heaviest_stack
        return SlowSpan(
            span=span,
            request=self.spans.request_of(span),
            caller=_caller(span, own),
            split=split_of(linked.samples),
            stack=own,
            n_spans=len(below),
            n_queries=sum(1 for inner in below if inner.statement is not None),
        )

    def requests(self) -> list[SlowSpan]:
        """The roots of all traces, the slowest first."""
        return [self.slow_span(span) for span in sorted(self.spans.local_roots(), key=lambda span: -span.duration_ns)]

    def queries(self) -> list[Query]:
        """The statements, the one with the most time first."""
        runs: dict[str, list[Span]] = {}
        for span in self.spans.by_id.values():
            if span.statement is not None:
                runs.setdefault(span.statement, []).append(span)
        return sorted((self._query(*item) for item in runs.items()), key=lambda query: -query.total_ns)

    def _query(self, statement: str, spans: list[Span]) -> Query:
        requests = [self.spans.request_of(span) for span in spans]
        callers = [_caller(span, self.links.of(span).heaviest_stack) for span in spans]
        return Query(
            statement=statement,
            durations_ns=sorted(span.duration_ns for span in spans),
            callers=Counter(str(caller) for caller in callers if caller).most_common(),
            requests=Counter(request.name for request in requests).most_common(),
            most_in_one_request=max(Counter(request.id for request in requests).values()),
            slowest=self.slow_span(max(spans, key=lambda span: span.duration_ns)),
        )

    def stacks(self) -> list[HotStack]:
        """The stacks, the one with the most wall time first."""
        found: dict[tuple[Frame, ...], list[StackSample]] = {}
        for sample in self.samples:
            found.setdefault(sample.frames, []).append(sample)
        stacks = [
            HotStack(
                frames,
                wall_ns=sum(sample.wall_ns for sample in samples),
                cpu_ns=sum(sample.cpu_ns for sample in samples),
                split=split_of(samples),
                n_linked=sum(1 for sample in samples if sample.span_id),
            )
            for frames, samples in found.items()
        ]
        return sorted(stacks, key=lambda stack: (-stack.wall_ns, -stack.cpu_ns))


def _caller(span: Span, stack: tuple[Frame, ...]) -> Caller | None:
    function, file, line = (span.attributes.get(key) for key in (_FUNCTION, _FILE, _LINE))
    if isinstance(function, str) and isinstance(file, str) and isinstance(line, int):
        return Caller(Frame(function, file, line, 0), is_exact=True)
    frame = caller_in(stack)
    return Caller(frame, is_exact=False) if frame else None
