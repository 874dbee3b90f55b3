"""Statements without their values, and their runs in groups."""

from typing import Any

import pytest

from otel_asyncprof.viewer.query_groups import Group, Run
from otel_asyncprof.viewer.statements import normalised

MS = 1_000_000


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT *\n  FROM lines WHERE id = 5", "SELECT * FROM lines WHERE id = ?"),
        ("select 'it''s', \"name\", E'a\\'b' from t1", 'select ?, "name", ? from t1'),
        ("SELECT * FROM t WHERE id IN (1, 2, 3) AND x IN ($1,$2)", "SELECT * FROM t WHERE id IN (?) AND x IN (?)"),
        ("INSERT INTO t(a, b) VALUES (1, 'x'), (2, 'y')", "INSERT INTO t(a, b) VALUES (?)"),
        ("SELECT a /* request 17 */ FROM t -- by 4\nLIMIT 10", "SELECT a FROM t LIMIT ?"),
        ("SELECT :id, %s, %(name)s, ?, @1, a::text", "SELECT ?, ?, ?, ?, ?, a::text"),
        ("SELECT -1.5e3, 0xFF, a-1, col2, v1.x", "SELECT ?, ?, a-?, col2, v1.x"),
        ("SELECT $tag$ don't $tag$, `a b` FROM [c d]", "SELECT ?, `a b` FROM [c d]"),
        ("SELECT 'unfinished", "SELECT ?"),
        ("/* never closed SELECT 1", ""),
    ],
)
def test_a_statement_has_a_mark_for_every_value(statement: str, expected: str) -> None:
    """Names and structure stay; comments go."""
    assert normalised(statement) == expected


def test_a_command_of_redis_is_known_by_its_first_word() -> None:
    """Its keys are values."""
    assert [normalised(text, "redis") for text in ("get user:17", "PING", "")] == ["GET ?", "PING", ""]


def test_a_huge_statement_is_cut() -> None:
    """A bulk insert of megabytes is not worth its time."""
    assert len(normalised("SELECT " + "a" * 100_000)) == 4096


def run(number: int, milliseconds: int, *, trace: bytes = b"T" * 16, **fields: Any) -> Run:
    """A run of one statement."""
    values = {"operation": "GET /orders", "service": "shop", "caller": None} | fields
    return Run(trace, number.to_bytes(8), number, milliseconds * MS, **values)


def test_a_group_has_the_times_of_its_runs() -> None:
    """Nearest ranks: the p50 of 20 runs is the tenth, the p95 the nineteenth."""
    group = Group([run(n, n) for n in range(1, 21)])
    assert len(group.runs) == 20
    assert group.total_ns == 210 * MS
    assert [group.percentile_ns(share) // MS for share in (0.5, 0.95, 1.0)] == [10, 19, 20]


def test_exact_and_sampled_callers_are_told_apart() -> None:
    """Also when both name the same place."""
    runs = [
        *(run(n, 2, caller=7) for n in range(3)),
        run(4, 9, caller=7, is_sampled=True),
        run(5, 1, caller=8, operation="job"),
        run(6, 1),
    ]
    group = Group(runs)
    assert [(caller.frame, caller.exact, len(caller.runs)) for caller in group.callers()] == [
        (7, True, 3),
        (8, True, 1),
        (7, False, 1),
    ]
    assert group.callers()[2].runs[-1].duration_ns == 9 * MS
    assert group.callers()[1].operations == [(("shop", "job"), 1)]
    assert group.operations() == [(("shop", "GET /orders"), 5, 16 * MS), (("shop", "job"), 1, MS)]


def test_the_histogram_has_a_bucket_for_each_power_of_two() -> None:
    """Upper bounds in microseconds, without gaps."""
    group = Group([run(1, 1), run(2, 1), run(3, 4)])
    assert group.histogram() == [(1024, 2), (2048, 0), (4096, 1)]
