"""The order of a waterfall, the critical path, statements that repeat, and words for thin data."""

from dataclasses import replace

import pytest

from otel_asyncprof.viewer import markdown
from otel_asyncprof.viewer.thin import Facts, explanation
from otel_asyncprof.viewer.waterfall import SpanRow, critical_path, placed, repeated

MS = 1_000_000


def row(name: str, parent: str | None, begin: int, end: int, query: int | None = None) -> SpanRow:
    """A span with times in milliseconds; its id is its name."""
    parent_id = parent.encode() if parent else None
    return SpanRow(name.encode(), parent_id, name, "shop", 1, begin * MS, end * MS, False, name, query, None, 1)


def order(*rows: SpanRow) -> list[tuple[str, int, int]]:
    """Name, parent and depth."""
    return [(span.row.name, span.parent, span.depth) for span in placed(rows)]


def test_parents_come_before_children_and_siblings_by_start() -> None:
    """The order in which rows are drawn."""
    rows = row("c", "root", 20, 30), row("a2", "a", 5, 6), row("a", "root", 0, 9), row("root", None, 0, 40)
    assert order(*rows) == [("root", -1, 0), ("a", 0, 1), ("a2", 1, 2), ("c", 0, 1)]


def test_a_span_whose_parent_is_missing_is_a_root() -> None:
    """Its parent may still arrive."""
    assert order(row("b", "gone", 5, 9), row("a", None, 0, 9)) == [("a", -1, 0), ("b", -1, 0)]


def test_spans_in_a_circle_are_shown_too() -> None:
    """Whoever sends such a thing."""
    assert order(row("a", "b", 0, 5), row("b", "a", 1, 4), row("self", "self", 2, 3)) == [
        ("self", -1, 0),
        ("a", -1, 0),
        ("b", 1, 1),
    ]


def test_a_chain_of_spans_deeper_than_the_stack_of_python_is_placed() -> None:
    """No recursion."""
    rows = [row(f"s{n}", f"s{n - 1}" if n else None, n, 10_000) for n in range(5000)]
    spans = placed(rows)
    assert (len(spans), spans[-1].depth) == (5000, 4999)
    assert len(critical_path(spans)) == 5000


def test_the_critical_path_is_what_the_end_waited_for() -> None:
    """Of two at a time the one that ends last; before it, what ended before it began."""
    spans = placed(
        [
            row("root", None, 0, 100),
            row("first", "root", 5, 30),
            row("beside", "root", 6, 20),
            row("last", "root", 35, 90),
            row("inner", "last", 40, 80),
        ]
    )
    assert [spans[index].row.name for index in critical_path(spans)] == ["root", "first", "last", "inner"]
    assert critical_path([]) == []


def test_a_statement_that_one_span_runs_five_times_is_named() -> None:
    """The most runs first."""
    rows = [row(f"a{n}", "p", n, n + 1, query=1) for n in range(6)]
    rows += [row(f"b{n}", "p", n, n + 1, query=2) for n in range(4)]
    rows += [row(f"c{n}", "q", n, n + 1, query=2) for n in range(5)]
    assert [(found.query, found.runs, found.parent_id) for found in repeated(rows)] == [(1, 6, b"p"), (2, 5, b"q")]


ENOUGH = Facts(
    duration_ns=500 * MS,
    ended_ns=0,
    now_ns=60_000 * MS,
    samples=40,
    period_ns=10 * MS,
    has_profile=True,
    timeline=True,
    runs=412,
    runs_with_samples=38,
)


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (
            {"samples": 0, "duration_ns": 3 * MS},
            "too_short",
            "lasted 3 ms; a look is taken every 10 ms. 38 of 412 runs",
        ),
        ({"samples": 0, "now_ns": 2000 * MS}, "still_arriving", "on their way"),
        ({"samples": 0, "has_profile": False}, "no_profile", "OTEL_ASYNCPROF_ENABLED"),
        ({"samples": 0}, "not_linked", "no sample is linked"),
        ({"samples": 2}, "few_samples", "Only 2 looks at this span"),
        ({"samples": 1}, "few_samples", "Only 1 look at this span"),
        ({"timeline": False}, "no_timeline", "OTEL_ASYNCPROF_TIMELINE=true"),
    ],
)
def test_thin_data_explain_themselves(change: dict[str, object], reason: str, words: str) -> None:
    """With a reason and a next step."""
    found = explanation(replace(ENOUGH, **change))
    assert found is not None
    assert found[0] == reason
    assert words in found[1]


@pytest.mark.parametrize("change", [{"samples": 2}, {"samples": 0}, {"samples": 0, "duration_ns": 3 * MS}])
def test_other_runs_are_spoken_of_once_and_only_when_there_are_some(change: dict[str, object]) -> None:
    """Of the only run it would be no news."""
    sentences = [explanation(replace(ENOUGH, runs=runs, runs_with_samples=1, **change)) for runs in (412, 1)]
    counts = [found and found[1].count(" runs of this operation have stacks") for found in sentences]
    assert counts == [1, 0]
    assert all(found and found[1].endswith(".") for found in sentences)


def test_enough_data_need_no_explanation() -> None:
    """Silence."""
    assert explanation(ENOUGH) is None


def function(name: str, self_us: int) -> dict[str, object]:
    """A row of the table."""
    return {"function": name, "file": "/app/a|b.py", "line": 7, "self_us": self_us, "total_us": self_us}


def test_markdown_is_short_and_names_mean_nothing_in_it() -> None:
    """Under 4 kB, with scope and number of samples; a name with marks stays text."""
    rows = [function("<b>*f*_`x`|", 2_500_000), *(function(f"f{n}" * 20, 10) for n in range(200))]
    split = {f"{state}_us": 0 for state in ("running", "waiting", "ready", "blocked", "not_sampled")}
    split |= {"running_us": 750, "not_sampled_us": 250}
    text = markdown.summary("GET /<x>", ["service shop"], split, {"rows": rows, "samples": 183}, "the span itself")
    assert len(text.encode()) <= 4000
    assert text.startswith("### GET /\\<x\\>\n")
    assert "- time: running 75%, not sampled 25%\n- scope: the span itself, 183 samples\n" in text
    assert "| 2.50 s | 2.50 s | \\<b\\>\\*f\\*\\_\\`x\\`\\| | /app/a\\|b.py:7 |" in text
