"""What counts as a right stack, and the formats of other profilers."""

import json

import pytest
from peers.delivered import Truth, Verdict, judge, per_second
from peers.mojo import mojo_stacks
from peers.pprof import PprofSample, pprof_samples
from peers.stacks import Seen, lines_of_austin, lines_of_py_spy

TRUTH = Truth(
    parents={"query_1": "handle_1", "query_2": "handle_2"},
    tops={"query_1": "execute", "query_2": "execute"},
    leaf_share=None,
    spans={"aa": "query_1", "bb": "query_2", "cc": "query_1"},
    tasks={"Task-7": "aa"},
)
WHOLE = ("main", "handle_1", "query_1", "execute", "sleep")


@pytest.mark.parametrize(
    ("functions", "right"),
    [
        (WHOLE, 1),
        (("main", "handle_1", "gather", "Task-7", "query_1", "cursor", "execute"), 1),
        (("module.main", "Class.handle_1", "query_1", "execute"), 1),
        (("main", "handle_2", "query_1", "execute"), 0),
        (("main", "query_1", "execute"), 0),
        (("main", "handle_1", "query_2", "handle_1", "query_1", "execute"), 1),
        (("main", "handle_1", "query_2", "query_1", "execute"), 0),
        (("main", "handle_1", "query_1"), 0),
    ],
)
def test_a_stack_is_right_with_its_parent_next_below_and_its_end_on_top(functions, right):
    """Frames that no program tells apart may stand in between."""
    assert judge([Seen(functions, 1)], TRUTH) == Verdict(all=1, leaves=1, right_parent=right)


def test_stacks_without_a_leaf_are_only_counted():
    """Those of the loop itself, say."""
    assert judge([Seen(("main", "select"), 3), Seen(WHOLE, 2)], TRUTH) == Verdict(all=5, leaves=2, right_parent=2)


@pytest.mark.parametrize(
    ("span", "task", "right"),
    [
        ("aa", None, 1),
        ("cc", None, 1),
        ("bb", None, 0),
        (None, None, 0),
        ("dd", None, 0),
        ("aa", "Task-7", 1),
        ("cc", "Task-7", 0),
        ("cc", "Task-8", 1),
    ],
)
def test_a_span_is_right_by_its_task_or_else_by_its_function(span, task, right):
    """Another span of the same function is wrong where the format says which task it was."""
    verdict = judge([Seen(WHOLE, 1, span, task)], TRUTH)
    assert (verdict.right_span, verdict.right) == (right, right)


def test_stacks_per_second_of_a_format_that_has_times_come_from_the_looks():
    """8,000 looks at tasks in 4 s, of which 90 % at leaves, of whose time three quarters are right."""
    truth = Truth(**{**TRUTH.__dict__, "leaf_share": 0.9})
    profile = {"seconds": 4.0, "window": {"tasks_visited": 8000, "threads_seen": 400}}
    verdict = Verdict(all=500, leaves=400, right_parent=300, right_span=300, right=300)
    assert per_second(verdict, truth, profile) == pytest.approx(
        {
            "stacks_per_second": 1900,
            "right_parent_per_second": 1350,
            "right_span_per_second": 1350,
            "right_per_second": 1350,
        }
    )


def test_truth_is_read_as_a_program_writes_it(tmp_path):
    """From truth.json."""
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH.__dict__))
    assert Truth.read(tmp_path) == TRUTH


def field(number, content):
    """A protobuf field: an integer, or bytes behind their length, all below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def test_pprof_is_read():
    """Leaf first in the file; values by their type, labels with texts and numbers."""
    strings = ["", "wall-samples", "main", "query", "span id", "task name", "T"]
    profile = field(1, field(1, 1))
    profile += field(2, field(1, bytes([2, 1])) + field(2, bytes([5])) + field(3, field(1, 4) + field(3, 9)))
    profile += field(2, field(1, bytes([1])) + field(2, bytes([1])) + field(3, field(1, 5) + field(2, 6)))
    profile += field(4, field(1, 1) + field(4, field(1, 11))) + field(4, field(1, 2) + field(4, field(1, 12)))
    profile += field(5, field(1, 11) + field(2, 2)) + field(5, field(1, 12) + field(2, 3))
    profile += b"".join(field(6, text.encode()) for text in strings) + field(12, 10)
    assert list(pprof_samples(profile)) == [
        PprofSample(("main", "query"), {"wall-samples": 5}, {"span id": 9}, 10),
        PprofSample(("main",), {"wall-samples": 1}, {"task name": "T"}, 10),
    ]


MOJO = b"MOJ\x03" + b"\x01mode\0wall\0"
MOJO += b"\x0b\x05main\0" + b"\x03\x01\x09\x05\x00\x00\x00\x00"  # string 5; frame 1: file 9, name 5, four numbers
ONE_STACK = b"\x02\x07\x00MainThread\0" + b"\x05\x01" + b"\x04" + b"\x09\x81\x01"


def test_mojo_is_read_from_where_the_window_opened():
    """Names from before it are known; a stack that is cut off at the end is none."""
    stream = MOJO + ONE_STACK + ONE_STACK + ONE_STACK[:-2]
    assert list(mojo_stacks(stream, 0)) == [("main", "?")] * 2
    assert list(mojo_stacks(stream, len(MOJO + ONE_STACK))) == [("main", "?")]


def test_collapsed_stacks_are_read(tmp_path):
    """py-spy counts in its last column; austin writes a line for each sample."""
    (tmp_path / "profile.txt").write_text("main (a b.py:1);Class.query (c.py:2) 17\n")
    assert list(lines_of_py_spy(tmp_path, {})) == [Seen(("main", "Class.query"), 17)]
    (tmp_path / "profile.txt").write_text("# mode: wall\n\nP1;T0:2;/a b.py:main:1;<frozen x>:Class.query:2 346\n")
    assert list(lines_of_austin(tmp_path, {})) == [Seen(("main", "Class.query"), 1)]
