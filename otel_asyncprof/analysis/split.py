"""How time divides into running, waiting, ready and blocked."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..formats.stack_sample import Frame, StackSample
from .spans import Span, SpanId, Spans

STATES = ("running", "waiting", "ready", "blocked")

Split = Mapping[str, int]  # state -> ns


def split_of(samples: Iterable[StackSample]) -> Split:
    """The wall time of samples by state."""
    totals: Counter[str] = Counter()
    for sample in samples:
        totals[sample.state or "running"] += sample.wall_ns
    return {state: totals[state] for state in (*STATES, *sorted(totals.keys() - set(STATES))) if totals[state]}


def text_of(split: Split) -> str:
    """A split for people: the largest share first."""
    total = sum(split.values())
    shares = sorted(split.items(), key=lambda item: -item[1])
    return (
        ", ".join(f"{state} {value / total:.0%}" for state, value in shares if value / total >= 0.005) if total else ""
    )


@dataclass(frozen=True)
class Linked:
    """All samples that are linked to one span."""

    samples: tuple[StackSample, ...] = ()

    @property
    def heaviest_stack(self) -> tuple[Frame, ...]:
        """The stack with the most wall time, root first."""
        totals: Counter[tuple[Frame, ...]] = Counter()
        for sample in self.samples:
            totals[sample.frames] += max(sample.wall_ns, sample.cpu_ns)
        return max(totals, key=lambda frames: totals[frames], default=())


class Links:
    """The samples of each span."""

    def __init__(self, samples: Iterable[StackSample]) -> None:
        found: dict[SpanId, list[StackSample]] = {}
        for sample in samples:
            if sample.span_id:
                found.setdefault(SpanId(sample.trace_id, sample.span_id), []).append(sample)
        self._of_span = {span: Linked(tuple(samples)) for span, samples in found.items()}

    def of(self, span: Span) -> Linked:
        """The samples linked to this very span."""
        return self._of_span.get(span.id, Linked())

    def below(self, span: Span, spans: Spans) -> Linked:
        """The samples linked to a span or to one below it."""
        return Linked(tuple(sample for inner in spans.tree(span) for sample in self.of(inner).samples))
