"""Stacks with their time become trees, tables and comparisons."""

import itertools
import random

import pytest

from otel_asyncprof.formats.stack_sample import Frame
from otel_asyncprof.viewer.comparison import Half, compared, over_represented
from otel_asyncprof.viewer.flame import Functions, Weight, columns_of
from otel_asyncprof.viewer.function_table import function_rows, margin
from otel_asyncprof.viewer.stack_filter import (
    Pattern,
    callees_of,
    callers_of,
    focused,
    hidden,
    without_libraries,
    without_recursion,
)

US = 1000
FRAMES = {
    1: Frame("main", "/app/a.py", 10, 1),
    2: Frame("handler", "/app/a.py", 20, 15),
    3: Frame("handler", "/app/a.py", 25, 15),
    4: Frame("fetch", "/app/b.py", 7, 5),
    5: Frame("Connection.fetch", "/env/lib/python3.12/site-packages/driver.py", 690, 680),
    6: Frame("dumps", "/usr/lib/python3.12/json/__init__.py", 231, 183),
}
STACKS = {
    (1, 2, 4, 5): Weight([0, 60 * US, 0, 0], 6),
    (1, 3, 6): Weight([20 * US, 0, 0, 10 * US], 3),
    (1, 2): Weight([10 * US, 0, 0, 0], 1),
}


def tree(weights=STACKS, *, by_line: bool = False, inverted: bool = False, prune: float = 0.0):
    """Columns with names in place of numbers."""
    functions = Functions(FRAMES, by_line=by_line)
    found = columns_of(weights, functions, inverted=inverted, prune=prune)
    nodes = found["nodes"]
    names = ["" if number < 0 else functions.frames[number].function for number in nodes["frame"]]
    return nodes | {"name": names, "pruned": found["pruned"]}


def test_a_function_is_one_node_under_its_caller_with_its_heaviest_line() -> None:
    """Pre-order, the heaviest sibling first; totals hold what is below, self does not."""
    nodes = tree()
    assert nodes["name"] == ["", "main", "handler", "fetch", "Connection.fetch", "dumps"]
    assert nodes["parent"] == [-1, 0, 1, 2, 3, 2]
    assert nodes["line"] == [0, 10, 20, 7, 690, 231]
    assert nodes["total_us"] == [100, 100, 100, 60, 60, 30]
    assert nodes["self_us"] == [0, 0, 10, 0, 60, 30]
    assert nodes["running_us"] == [30, 30, 30, 0, 0, 20]
    assert nodes["waiting_us"] == [60, 60, 60, 60, 60, 0]
    assert nodes["blocked_us"] == [10, 10, 10, 0, 0, 10]
    assert nodes["samples"] == [10, 10, 10, 6, 6, 3]


def test_by_line_the_lines_of_a_function_are_nodes_of_their_own() -> None:
    """The handler awaits at line 20 and works at line 25."""
    nodes = tree(by_line=True)
    handlers = [index for index, name in enumerate(nodes["name"]) if name == "handler"]
    assert [(nodes["line"][index], nodes["total_us"][index]) for index in handlers] == [(20, 70), (25, 30)]


def test_inverted_the_leaves_come_first() -> None:
    """Below a leaf stand its callers, each with the time of the leaf under it."""
    nodes = tree(inverted=True)
    assert nodes["name"][:5] == ["", "Connection.fetch", "fetch", "handler", "main"]
    assert nodes["total_us"][:5] == [100, 60, 60, 60, 60]
    assert nodes["self_us"][:5] == [0, 0, 0, 0, 60]


def test_light_nodes_are_left_out_and_counted() -> None:
    """Below a share of the root."""
    nodes = tree(prune=0.5)
    assert nodes["name"] == ["", "main", "handler", "fetch", "Connection.fetch"]
    assert nodes["pruned"] == 1


@pytest.mark.parametrize("most", [50_000, 40, 7, 1])
@pytest.mark.parametrize("prune", [0.0, 0.002, 0.01, 0.1, 1.0])
def test_a_tree_holds_what_its_stacks_add_up_to(monkeypatch: pytest.MonkeyPatch, prune: float, most: int) -> None:
    """Random stacks, each path added up by hand; light ones are left out with what is below them."""
    monkeypatch.setattr("otel_asyncprof.viewer.flame.MAX_NODES", most)
    chance = random.Random(5)
    stacks = {
        (1, *(chance.choice((2, 3, 4, 5, 6)) for _ in range(chance.randrange(8)))): Weight(
            [chance.randrange(50) * US, chance.randrange(50) * US, 0, US], chance.randrange(9)
        )
        for _ in range(300)
    }
    for inverted in (False, True):
        expected = added_up(stacks, inverted=inverted, prune=prune, most=most)
        nodes = tree(stacks, prune=prune, inverted=inverted)
        paths: list[tuple[str, ...]] = []
        for name, parent in zip(nodes["name"], nodes["parent"], strict=True):
            paths.append((*paths[parent], name) if parent >= 0 else ())
        told = zip(nodes["total_us"], nodes["self_us"], nodes["waiting_us"], nodes["samples"], strict=True)
        assert dict(zip(paths, told, strict=True)) == expected
        order = list(zip(nodes["parent"], nodes["total_us"], strict=True))
        assert all(one[0] != next_[0] or one[1] >= next_[1] for one, next_ in itertools.pairwise(order))


def added_up(
    stacks: dict[tuple[int, ...], Weight], *, inverted: bool, prune: float, most: int
) -> dict[tuple[str, ...], tuple[int, int, int, int]]:
    """Of each path the total, its own time, the waiting and the number of samples."""
    sums: dict[tuple[str, ...], list[float]] = {}
    for stack, weight in stacks.items():
        names = [FRAMES[frame].function for frame in (stack[::-1] if inverted else stack)]
        for depth in range(len(names) + 1):
            of_path = sums.setdefault(tuple(names[:depth]), [0, 0, 0, 0])
            added = (weight.total, weight.total if depth == len(names) else 0, weight.states[1], weight.n)
            of_path[:] = [one + other for one, other in zip(of_path, added, strict=True)]
    heaviest = sorted((of_path[0] for of_path in sums.values()), reverse=True)
    tied = len(heaviest) > most and heaviest[most] == heaviest[most - 1]
    bound = heaviest[most - 1] if len(heaviest) > most else 0
    return {
        path: (round(total / US), round(own / US), round(waiting / US), n)
        for path, (total, own, waiting, n) in sums.items()
        if not path or (total >= max(prune * sums[()][0], bound) and not (tied and total == bound))
    }


def test_a_tree_has_at_most_so_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The heaviest are kept."""
    monkeypatch.setattr("otel_asyncprof.viewer.flame.MAX_NODES", 4)
    assert len(tree()["name"]) <= 4
    assert tree()["pruned"] >= 1


def test_nodes_of_the_same_weight_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the limit falls among them, none is."""
    monkeypatch.setattr("otel_asyncprof.viewer.flame.MAX_NODES", 3)
    same = {(1, leaf): Weight([US, 0, 0, 0], 1) for leaf in (2, 4, 5, 6)}
    columns = columns_of(same, Functions(FRAMES))
    assert (columns["nodes"]["total_us"], columns["pruned"]) == ([4, 4], 4)


def test_recursion_counts_once_in_the_table() -> None:
    """A function that calls itself has the time of its stacks, not a multiple."""
    rows = function_rows({(1, 2, 3, 2): Weight([40 * US, 0, 0, 0], 4)}, FRAMES)
    handler = next(row for row in rows if row.frame.function == "handler").json()
    assert (handler["total_us"], handler["self_us"], handler["samples"], handler["line"]) == (40, 40, 4, 20)


def test_the_table_says_what_the_graph_says() -> None:
    """Self times add up to the root's total."""
    rows = [row.json() for row in function_rows(STACKS, FRAMES)]
    assert [(row["function"], row["self_us"], row["total_us"]) for row in rows] == [
        ("Connection.fetch", 60, 60),
        ("dumps", 30, 30),
        ("handler", 10, 100),
        ("main", 0, 100),
        ("fetch", 0, 60),
    ]
    assert [row["kind"] for row in rows] == ["installed", "standard", "own", "own", "own"]
    assert sum(row["self_us"] for row in rows) == 100


def test_few_samples_have_a_wide_margin() -> None:
    """Two standard deviations."""
    assert [margin(n) for n in (0, 1, 16, 400)] == [1.0, 1.0, 0.5, 0.1]


def test_search_finds_functions_files_and_lines_without_case() -> None:
    """What is searched is "function file:line"."""
    found = {text: Pattern(text).among(STACKS, FRAMES) for text in ("FETCH", r"a\.py:2\d", "json/__init__", "nothing")}
    assert found == {"FETCH": {4, 5}, r"a\.py:2\d": {2, 3}, "json/__init__": {6}, "nothing": set()}


@pytest.mark.parametrize("text", ["fetch(", "[", "*a", "(a+)+$", "(a|a)*b", "(?P<x", "a{99999999999}"])
def test_what_is_no_regular_expression_is_taken_as_text(text: str) -> None:
    """Also one that could run forever; the reason is told."""
    pattern = Pattern(text)
    assert pattern.error
    assert pattern.matches(Frame(f"f {text} g", "/a.py", 1, 1))
    assert not pattern.matches(FRAMES[1])


def test_focus_keeps_stacks_and_hide_takes_frames() -> None:
    """The time of a hidden frame is its caller's; stacks that become the same are one."""
    assert focused(STACKS, {4}).keys() == {(1, 2, 4, 5)}
    left = hidden(STACKS, {4, 5})
    assert {stack: weight.states for stack, weight in left.items()} == {
        (1, 2): [10 * US, 60 * US, 0, 0],
        (1, 3, 6): [20 * US, 0, 0, 10 * US],
    }
    assert STACKS[1, 2].states == [10 * US, 0, 0, 0]  # what was given is as it was


def test_without_libraries_the_leaf_stays() -> None:
    """It says what the time went into."""
    deep = {(1, 6, 2, 6, 5): Weight([US, 0, 0, 0], 1)}
    assert list(without_libraries(deep, FRAMES)) == [(1, 2, 5)]


def test_folded_recursion_has_each_function_once() -> None:
    """What lies between two calls is left out, the line is the inner one; stacks that become the same are one."""
    deep = {
        (1, 2, 4, 3, 5): Weight([US, 0, 0, 0], 1),
        (1, 2, 3, 5): Weight([0, US, 0, 0], 2),
        (1, 4, 2, 4, 3, 4): Weight([US, 0, 0, 0], 1),
        (1, 6): Weight([US, 0, 0, 0], 1),
    }
    found = without_recursion(deep, FRAMES)
    assert {stack: (weight.states[:2], weight.n) for stack, weight in found.items()} == {
        (1, 3, 5): ([US, US], 3),
        (1, 4): ([US, 0], 1),
        (1, 6): ([US, 0], 1),
    }


def test_a_function_has_callers_and_callees() -> None:
    """From its outermost call up, and down."""
    named = ("handler", "/app/a.py")
    assert set(callers_of(STACKS, named, FRAMES)) == {(1, 2), (1, 3)}
    assert set(callees_of(STACKS, named, FRAMES)) == {(2, 4, 5), (3, 6), (2,)}


def test_a_comparison_is_per_run() -> None:
    """Two slow runs against four fast ones."""
    slow = Half({(1, 2, 4): Weight([0, 400 * US, 0, 0], 400)}, 2)
    fast = Half({(1, 2, 4): Weight([0, 40 * US, 0, 0], 400), (1, 3, 6): Weight([8 * US, 0, 0, 0], 80)}, 4)
    found = compared(fast, slow, FRAMES)
    nodes = found["nodes"]
    names = ["" if number < 0 else found["frames"][number][0] for number in nodes["frame"]]
    rows = list(zip(names, nodes["parent"], nodes["a_us"], nodes["b_us"], nodes["noise"], strict=True))
    assert rows == [
        ("", -1, 12, 200, 0),
        ("main", 0, 12, 200, 0),
        ("handler", 1, 12, 200, 0),
        ("fetch", 2, 10, 200, 0),
        ("dumps", 2, 2, 0, 0),
    ]
    assert [
        (found["frames"][change["frame"]][0], change["a_self_us"], change["b_self_us"]) for change in found["functions"]
    ][:1] == [("fetch", 10, 200)]


def test_a_difference_that_few_samples_cannot_tell_is_noise() -> None:
    """10 against 14 samples may be chance; 100 against 400 is none."""
    few = compared(
        Half({(1,): Weight([10 * US, 0, 0, 0], 10)}, 1), Half({(1,): Weight([14 * US, 0, 0, 0], 14)}, 1), FRAMES
    )
    many = compared(
        Half({(1,): Weight([US, 0, 0, 0], 100)}, 1), Half({(1,): Weight([4 * US, 0, 0, 0], 400)}, 1), FRAMES
    )
    assert few["nodes"]["noise"] == [1, 1]
    assert many["nodes"]["noise"] == [0, 0]


def test_attributes_that_slow_runs_have_more_often_are_named() -> None:
    """With both shares; the largest difference first."""
    fast = [[("tenant", "acme")], [("tenant", "b")], [("tenant", "b")], [("tenant", "b")]]
    slow = [[("tenant", "acme"), ("big", "True")], [("tenant", "acme"), ("big", "True")], [("tenant", "acme")]]
    assert over_represented(fast, slow) == [
        {"key": "tenant", "value": "acme", "a_share": 0.25, "b_share": 1.0},
        {"key": "big", "value": "True", "a_share": 0.0, "b_share": 0.6667},
    ]


def test_what_only_one_of_several_runs_has_is_not_named() -> None:
    """An id differs in each run, and says nothing of why they are slow; of a single run everything counts."""
    fast = [[("id", str(number))] for number in range(4)]
    slow = [[("id", str(number)), ("big", "True")] for number in range(4, 7)]
    assert [item["key"] for item in over_represented(fast, slow)] == ["big"]
    assert [item["key"] for item in over_represented(fast, slow[:1])] == ["big", "id"]
