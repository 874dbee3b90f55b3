"""How the time of spans divides: splits add up to the duration, and no moment counts twice."""

from array import array
from collections.abc import Sequence

import pytest

from otel_asyncprof.viewer import intervals, splits
from otel_asyncprof.viewer.looks import Sample, looks_of, shared_time
from otel_asyncprof.viewer.splits import SpanTime, rounded, splits_of

MS = 1_000_000
TRACE, A, B, C = b"T" * 16, b"A" * 8, b"B" * 8, b"C" * 8


def sample(span: bytes, task: str, state: str, *observations: tuple[int, int], stack: int = 1) -> Sample:
    """Observations as (end, weight) in milliseconds."""
    wall_at = array("q", [value * MS for pair in observations for value in pair])
    total = sum(weight for _, weight in observations) * MS
    return Sample(TRACE, span, 1, "MainThread", task, state, stack, len(observations), total, 0, wall_at)


def untimed(span: bytes, state: str, milliseconds: int) -> Sample:
    """A sample of a profile without a timeline."""
    return Sample(TRACE, span, 1, "MainThread", "", state, 1, 1, milliseconds * MS, 0)


def span(span_id: bytes, parent: int, begin: int, end: int) -> SpanTime:
    """A span with times in milliseconds."""
    return SpanTime(span_id, parent, begin * MS, end * MS)


def in_ms(split: dict[str, float]) -> dict[str, float]:
    """Nanoseconds as milliseconds."""
    return {state: time / MS for state, time in split.items()}


def test_the_split_of_a_span_is_the_time_of_its_looks_within_it() -> None:
    """A look that began before the span tells of the span only from its begin on."""
    spans = [span(A, -1, 5, 50)]
    samples = [sample(A, "t", "running", (10, 10)), sample(A, "t", "waiting", (20, 10), (40, 20))]
    result = splits_of(spans, samples)[0]
    assert in_ms(result.tree) == {"running": 5, "waiting": 30}
    assert rounded(result.tree, 45 * MS) == {
        "running_us": 5000,
        "waiting_us": 30000,
        "ready_us": 0,
        "blocked_us": 0,
        "not_sampled_us": 10000,
    }


def test_children_side_by_side_share_each_moment() -> None:
    """Two children of 20 ms within 20 ms are 20 ms of their parent, half of each."""
    spans = [span(A, -1, 0, 40), span(B, 0, 10, 30), span(C, 0, 10, 30)]
    samples = [
        sample(B, "b", "waiting", (20, 10), (30, 10)),
        sample(C, "c", "running", (20, 10), (30, 10)),
    ]
    root, left, right = splits_of(spans, samples)
    assert in_ms(root.tree) == {"waiting": 10, "running": 10}
    assert in_ms(left.tree) == {"waiting": 20}
    assert in_ms(right.tree) == {"running": 20}
    assert in_ms(root.own) == {"children": 20}


def test_a_child_that_ends_earlier_leaves_the_rest_to_the_other() -> None:
    """10 ms together count 5 ms each; 10 ms alone count in full."""
    spans = [span(A, -1, 0, 20), span(B, 0, 0, 20), span(C, 0, 0, 10)]
    samples = [sample(B, "b", "waiting", (20, 20)), sample(C, "c", "ready", (10, 10))]
    assert in_ms(splits_of(spans, samples)[0].tree) == {"waiting": 15, "ready": 5}


def test_a_task_with_two_awaiters_counts_once() -> None:
    """Its weight is split over two stacks of one look."""
    halves = [sample(A, "t", "waiting", (10, 5), stack=1), sample(A, "t", "waiting", (10, 5), stack=2)]
    looks = looks_of(halves)
    assert [(look.begin_ns, look.end_ns, look.stacks) for look in looks] == [(0, 10 * MS, [(1, 0.5), (2, 0.5)])]
    assert in_ms(splits_of([span(A, -1, 0, 10)], halves)[0].tree) == {"waiting": 10}


def test_a_weight_does_not_reach_behind_the_look_before() -> None:
    """A look stands for at most the time since the task was last looked at."""
    looks = looks_of([sample(A, "t", "running", (10, 10)), sample(A, "t", "waiting", (20, 30))])
    assert [(look.begin_ns // MS, look.end_ns // MS) for look in looks] == [(0, 10), (10, 20)]


def test_own_time_beside_a_child_is_not_the_childs() -> None:
    """What a span does itself while a child runs is its own; the rest of the child's time is `children`."""
    spans = [span(A, -1, 0, 30), span(B, 0, 10, 30)]
    samples = [sample(A, "a", "running", (20, 20)), sample(B, "b", "waiting", (30, 20))]
    root = splits_of(spans, samples)[0]
    assert in_ms(root.own) == {"running": 20, "children": 10}
    assert in_ms(root.tree) == {"running": 15, "waiting": 15}


def test_a_child_that_outlives_its_parent_counts_up_to_the_parents_end() -> None:
    """The parent's split is of the parent's time."""
    spans = [span(A, -1, 0, 10), span(B, 0, 5, 30)]
    root, child = splits_of(spans, [sample(B, "b", "waiting", (15, 10), (30, 15))])
    assert in_ms(root.tree) == {"waiting": 5}
    assert in_ms(child.tree) == {"waiting": 25}


def test_sums_without_a_timeline_are_scaled_down_to_the_duration() -> None:
    """60 ms of samples in a span of 30 ms keep their shares."""
    spans = [span(A, -1, 0, 30), span(B, 0, 0, 30)]
    root, child = splits_of(spans, [untimed(A, "running", 20), untimed(B, "waiting", 40)])
    assert in_ms(root.tree) == {"running": 10, "waiting": 20}
    assert in_ms(root.own) == {"running": 20, "children": 10}
    assert in_ms(child.tree) == {"waiting": 30}


def test_a_trace_too_large_to_share_out_is_scaled_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound on visits sums stand in; splits still fit into durations."""
    spans = [span(A, -1, 0, 20), span(B, 0, 0, 20), span(C, 0, 0, 20)]
    samples = [sample(B, "b", "waiting", (20, 20)), sample(C, "c", "running", (20, 20))]
    monkeypatch.setattr(splits, "MAX_VISITS", 1)
    assert in_ms(splits_of(spans, samples)[0].tree) == {"waiting": 10, "running": 10}


def test_cpu_time_and_samples_of_a_span() -> None:
    """CPU time counts with everything below; samples are the span's own."""
    spans = [span(A, -1, 0, 20), span(B, 0, 0, 20)]
    samples = [sample(A, "a", "running", (10, 10)), sample(B, "b", "running", (10, 10), (20, 10))]
    samples[0].cpu_ns, samples[1].cpu_ns = 10 * MS, 20 * MS
    assert [(split.samples, split.cpu_ns // MS) for split in splits_of(spans, samples)] == [(1, 30), (2, 20)]


@pytest.mark.parametrize(
    ("split", "duration"),
    [
        ({"running": 333.3, "waiting": 333.3, "ready": 333.4}, 1000),
        ({"running": 1_999.9, "waiting": 1_999.9, "ready": 1_999.9, "blocked": 1_999.9}, 8000),
        ({"running": 10_001.0}, 10_000),
        ({"waiting": 5_000.0}, 12_345),
        ({}, 7),
        ({"something else": 3_000.0, "children": 2_000.0}, 9_000),
    ],
)
def test_rounded_splits_add_up_to_the_microsecond(split: dict[str, float], duration: int) -> None:
    """Rounding loses nothing, also when a clock says that there was more than there can have been."""
    for own in (False, True):
        micros = rounded(split, duration, own=own)
        assert sum(micros.values()) == duration // 1000
        assert min(micros.values()) >= 0


def test_a_state_of_another_profiler_is_running() -> None:
    """A sample with an unknown state was seen, and is not lost."""
    assert rounded({"on_cpu": 5_000_000.0}, 8_000_000)["running_us"] == 5000


def test_time_is_shared_by_how_many_there_are_at_each_moment() -> None:
    """The sum of all shares is the length of the union."""
    samples = [sample(A, f"t{n}", "running", (10 * n + 20, 20)) for n in range(3)]
    looks = looks_of(samples)
    assert [time / MS for time in shared_time(looks)] == [15, 10, 15]


@pytest.mark.parametrize(
    ("one", "other", "left", "both"),
    [
        ([(0, 10)], [(2, 4), (6, 8)], [(0, 2), (4, 6), (8, 10)], [(2, 4), (6, 8)]),
        ([(0, 5), (10, 15)], [(3, 12)], [(0, 3), (12, 15)], [(3, 5), (10, 12)]),
        ([(0, 5)], [(5, 9)], [(0, 5)], []),
        ([(2, 3)], [(0, 9)], [], [(2, 3)]),
        ([], [(0, 9)], [], []),
    ],
)
def test_intervals_as_sets(
    one: list[tuple[int, int]],
    other: list[tuple[int, int]],
    left: Sequence[tuple[int, int]],
    both: Sequence[tuple[int, int]],
) -> None:
    """Differences and common parts."""
    assert intervals.without(one, other) == left
    assert intervals.common(one, other) == both


def test_the_union_of_intervals_has_no_overlaps() -> None:
    """Those that touch become one, empty ones vanish."""
    assert intervals.union([(5, 7), (0, 2), (2, 4), (6, 9), (9, 9)]) == [(0, 4), (5, 9)]
