"""How a span's time divides, for every span of a trace. Splits add up to the span's duration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import intervals
from .looks import RUNNING, STATES, Look, Sample, looks_of, shared_time

# Looks that may be visited for one trace, each once for every span that it is below.
MAX_VISITS = 400_000

NOT_SAMPLED, CHILDREN = "not_sampled", "children"


@dataclass(slots=True)
class SpanTime:
    """A span as the computation needs it. Spans stand in a sequence, parents before their children."""

    span_id: bytes
    parent: int  # index; -1 for a root
    begin_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """From begin to end."""
        return max(self.end_ns - self.begin_ns, 0)


@dataclass(slots=True)
class SpanSplit:
    """What is known of one span, in nanoseconds by state; `not_sampled` is left to the reader."""

    tree: dict[str, float]  # with everything below it
    own: dict[str, float]  # of the span itself, with `children`
    samples: int  # observations linked to this very span
    cpu_ns: int  # with everything below it


def splits_of(spans: Sequence[SpanTime], samples: Iterable[Sample]) -> list[SpanSplit]:
    """One for each span."""
    kept = list(samples)
    timeline = any(sample.wall_at for sample in kept)
    by_span: dict[bytes, list[Sample]] = {}
    for sample in kept:
        if sample.span_id:
            by_span.setdefault(sample.span_id, []).append(sample)
    results = [
        SpanSplit({}, {}, sum(sample.n for sample in linked), sum(sample.cpu_ns for sample in linked))
        for linked in (by_span.get(span.span_id, ()) for span in spans)
    ]
    for index in range(len(spans) - 1, -1, -1):
        if (parent := spans[index].parent) >= 0:
            results[parent].cpu_ns += results[index].cpu_ns
    looks = looks_by_span(spans, kept) if timeline else []
    if timeline and sum(map(len, looks)) * _mean_depth(spans, looks) <= MAX_VISITS:
        _from_looks(spans, looks, results)
    else:
        _from_sums(spans, by_span, results)
    return results


def looks_by_span(spans: Sequence[SpanTime], samples: Iterable[Sample]) -> list[list[Look]]:
    """For each span the looks linked to it, within its time."""
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    found: list[list[Look]] = [[] for _ in spans]
    for look in looks_of(samples):
        index = index_of.get(look.span_id or b"")
        if index is not None and (part := look.within(spans[index].begin_ns, spans[index].end_ns)):
            found[index].append(part)
    return found


def _mean_depth(spans: Sequence[SpanTime], looks: Sequence[Sequence[Look]]) -> float:
    depths: list[int] = []
    visits = 0
    for index, span in enumerate(spans):
        depths.append(depths[span.parent] + 1 if span.parent >= 0 else 1)
        visits += depths[-1] * len(looks[index])
    return visits / max(sum(map(len, looks)), 1)


def by_state(looks: Sequence[Look]) -> dict[str, float]:
    """The time of looks by state, each moment once."""
    if len(looks) == 1:
        return {looks[0].state: float(looks[0].end_ns - looks[0].begin_ns)}
    totals: dict[str, float] = {}
    for look, time in zip(looks, shared_time(looks), strict=True):
        totals[look.state] = totals.get(look.state, 0.0) + time
    return totals


def _from_looks(spans: Sequence[SpanTime], looks: list[list[Look]], results: list[SpanSplit]) -> None:
    below: list[list[Look]] = [list(own) for own in looks]
    children: list[list[intervals.Interval]] = [[] for _ in spans]
    for index in range(len(spans) - 1, -1, -1):
        span = spans[index]
        if span.parent >= 0:
            children[span.parent].append((span.begin_ns, span.end_ns))
        own = by_state(looks[index]) if looks[index] else {}
        if not children[index]:
            results[index].tree = results[index].own = own
            if span.parent >= 0:
                below[span.parent].extend(looks[index])
            continue
        inside = [part for look in below[index] if (part := look.within(span.begin_ns, span.end_ns))]
        results[index].tree = by_state(inside)
        seen = intervals.union((look.begin_ns, look.end_ns) for look in looks[index])
        in_children = intervals.clipped(intervals.union(children[index]), span.begin_ns, span.end_ns)
        if left := intervals.length(intervals.without(in_children, seen)):
            own[CHILDREN] = left
        results[index].own = own
        if span.parent >= 0:
            below[span.parent].extend(below[index])
        below[index] = []


def _from_sums(spans: Sequence[SpanTime], by_span: Mapping[bytes, list[Sample]], results: list[SpanSplit]) -> None:
    own = [sums_by_state(by_span.get(span.span_id, ())) for span in spans]
    tree = [dict(sums) for sums in own]
    children: list[list[intervals.Interval]] = [[] for _ in spans]
    for index in range(len(spans) - 1, -1, -1):
        span, result = spans[index], results[index]
        below = intervals.clipped(intervals.union(children[index]), span.begin_ns, span.end_ns)
        result.own = scaled_down(own[index], span.duration_ns)
        fitting = min(intervals.length(below), span.duration_ns - sum(result.own.values()))
        if fitting > 0:
            result.own[CHILDREN] = fitting
        result.tree = scaled_down(tree[index], span.duration_ns)
        if span.parent >= 0:
            children[span.parent].append((span.begin_ns, span.end_ns))
            above = tree[span.parent]
            for state, value in tree[index].items():
                above[state] = above.get(state, 0.0) + value


def sums_by_state(samples: Iterable[Sample]) -> dict[str, float]:
    """The weights of samples by state."""
    sums: dict[str, float] = {}
    for sample in samples:
        sums[sample.state] = sums.get(sample.state, 0.0) + sample.wall_ns
    return sums


def scaled_down(sums: Mapping[str, float], most: float) -> dict[str, float]:
    """The same shares, together at most so much."""
    total = sum(sums.values())
    factor = most / total if total > most else 1.0
    return {state: value * factor for state, value in sums.items() if value * factor > 0}


def heaviest_stacks(samples: Iterable[Sample], spans: set[bytes]) -> dict[bytes, int]:
    """For each span the stack with the most time."""
    sums: dict[bytes, dict[int, int]] = {}
    for sample in samples:
        if sample.span_id in spans:
            of_span = sums.setdefault(sample.span_id, {})
            of_span[sample.stack] = of_span.get(sample.stack, 0) + max(sample.wall_ns, sample.cpu_ns)
    return {span: max(stacks, key=lambda stack: (stacks[stack], -stack)) for span, stacks in sums.items()}


def rounded(split: Mapping[str, float], duration_ns: int, *, own: bool = False) -> dict[str, int]:
    """Whole microseconds that add up to the duration's; what is left is `not_sampled`."""
    duration = duration_ns // 1000
    keys = _OWN_KEYS if own else _TREE_KEYS
    result = dict(_NOTHING_OWN if own else _NOTHING)
    result[_NOT_SAMPLED_KEY] = duration
    if not split:
        return result
    known: dict[str, float] = {}
    for state, value in split.items():
        key = keys.get(state, _RUNNING_KEY)  # the state of another profiler: it was seen
        known[key] = known.get(key, 0.0) + value
    floors = {key: int(value // 1000) for key, value in known.items()}
    remainder = duration - sum(floors.values())
    if remainder < 0:  # more was seen than there was time, by rounding or by a clock
        largest = max(floors, key=lambda key: floors[key])
        floors[largest] = max(floors[largest] + remainder, 0)
        remainder = max(duration - sum(floors.values()), 0)
    elif 0 < remainder <= len(keys) and sum(known.values()) >= duration_ns - 1000:
        cut_off = {key: known.get(key, 0.0) - floors.get(key, 0) * 1000 for key in keys.values()}
        for key in sorted(cut_off, key=lambda key: -cut_off[key])[:remainder]:
            floors[key] = floors.get(key, 0) + 1
        remainder = duration - sum(floors.values())
    result.update(floors)
    result[_NOT_SAMPLED_KEY] = remainder
    return result


_TREE_KEYS = {state: f"{state}_us" for state in STATES}
_OWN_KEYS = _TREE_KEYS | {CHILDREN: f"{CHILDREN}_us"}
_RUNNING_KEY, _NOT_SAMPLED_KEY = f"{RUNNING}_us", f"{NOT_SAMPLED}_us"
_NOTHING = dict.fromkeys([*_TREE_KEYS.values(), _NOT_SAMPLED_KEY], 0)
_NOTHING_OWN = dict.fromkeys([*_OWN_KEYS.values(), _NOT_SAMPLED_KEY], 0)
