"""Tasks on the time axis: who waited for whom, and who held the loop."""

from otel_asyncprof.formats.stack_sample import Frame
from otel_asyncprof.viewer.holders import holders_of, ready_times
from otel_asyncprof.viewer.lanes import Lane, lanes_of
from otel_asyncprof.viewer.looks import Look, Task
from otel_asyncprof.viewer.span_lanes import with_unseen_spans

MS = 1_000_000
REQUEST, QUERY, OTHER = b"R" * 8, b"Q" * 8, b"O" * 8
FRAMES = {
    1: Frame("main", "/app/a.py", 10, 1),
    2: Frame("handler", "/app/a.py", 20, 15),
    3: Frame("handler", "/app/a.py", 25, 15),
    4: Frame("fetch", "/app/b.py", 7, 5),
    5: Frame("execute", "/app/b.py", 30, 28),
}
STACKS = {1: (1, 2), 2: (1, 3), 3: (1, 3, 4), 4: (1, 3, 4, 5), 5: (1,)}
PARENTS = {REQUEST: None, QUERY: REQUEST, OTHER: None}


def look(
    begin: int, end: int, task: str, state: str, stack: int, span: bytes | None = REQUEST, process: int = 1
) -> Look:
    """A look with times in milliseconds."""
    return Look(begin * MS, end * MS, Task(process, "MainThread", task, b""), state, span, [(stack, 1.0)])


def shown(lanes: list[Lane]) -> list[tuple[str, int, list[tuple[int, int, str]]]]:
    """Names, depths and pieces in milliseconds."""
    return [
        (lane.task.name, lane.depth, [(p.begin_ns // MS, p.end_ns // MS, p.state) for p in lane.pieces])
        for lane in lanes
    ]


def test_a_task_stands_under_the_one_that_waits_for_it() -> None:
    """The waiting task gives no samples meanwhile: its gap is filled, and its line is known."""
    looks = [
        look(0, 10, "child", "waiting", 3, QUERY),
        look(20, 30, "child", "waiting", 3, QUERY),
        look(10, 20, "child", "running", 4, QUERY),
        look(-10, 0, "handler", "running", 1),
        look(30, 40, "handler", "running", 1),
    ]
    lanes = lanes_of(looks, STACKS, FRAMES, PARENTS)
    assert shown(lanes) == [
        ("handler", 0, [(-10, 0, "running"), (0, 30, "children"), (30, 40, "running")]),
        ("child", 1, [(0, 10, "waiting"), (10, 20, "running"), (20, 30, "waiting")]),
    ]
    by = lanes[1].awaited_by
    assert by is not None
    assert (by.lane, by.begin_ns, by.end_ns, FRAMES[by.frame].line) == (0, 0, 30 * MS, 25)


def test_a_task_that_waited_for_its_group_unseen_is_known_by_what_it_did_afterwards() -> None:
    """Its only look is on another line of the same function; a later child of the group is no parent."""
    frames = FRAMES | {6: Frame("TaskGroup.__aexit__", "/usr/lib/python3.12/asyncio/taskgroups.py", 145, 110)}
    frames |= {7: Frame("respond", "/app/a.py", 40, 39)}
    stacks = {1: (1, 3, 6, 4), 2: (1, 2, 7), 3: (1, 3, 6, 5)}
    looks = [look(0, 90, "child", "waiting", 1, QUERY), look(90, 100, "request", "running", 2)]
    lanes = lanes_of(looks, stacks, frames, PARENTS)
    assert shown(lanes) == [
        ("request", 0, [(0, 90, "children"), (90, 100, "running")]),
        ("child", 1, [(0, 90, "waiting")]),
    ]
    by = lanes[1].awaited_by
    assert by is not None
    assert (by.lane, frames[by.frame].function, frames[by.frame].line) == (0, "handler", 25)
    later = [looks[0], look(90, 100, "sibling", "running", 3)]
    assert [lane.awaited_by for lane in lanes_of(later, stacks, frames, PARENTS)] == [None, None]


def test_looks_that_follow_each_other_are_one_piece() -> None:
    """The same state on the same stack under the same span; a gap stays a gap."""
    looks = [look(0, 10, "t", "waiting", 1), look(10, 20, "t", "waiting", 1), look(30, 40, "t", "waiting", 1)]
    assert shown(lanes_of(looks, STACKS, FRAMES, PARENTS)) == [("t", 0, [(0, 20, "waiting"), (30, 40, "waiting")])]


def test_of_two_handlers_the_one_with_the_span_above_is_the_awaiter() -> None:
    """Both have the same frames; the spans tell them apart."""
    looks = [
        look(0, 10, "other", "running", 1, OTHER),
        look(0, 10, "mine", "running", 1, REQUEST),
        look(10, 20, "child", "waiting", 3, QUERY),
    ]
    lanes = lanes_of(looks, STACKS, FRAMES, PARENTS)
    by = next(lane for lane in lanes if lane.task.name == "child").awaited_by
    assert by is not None
    assert lanes[by.lane].task.name == "mine"


def test_a_task_that_only_waits_for_tasks_until_its_end_is_the_awaiter_all_the_same() -> None:
    """It is seen for the first time after them; one that has spans of its own by then is just a later one."""
    looks = [
        look(0, 40, "child", "waiting", 4, QUERY),
        look(50, 60, "later", "waiting", 3, OTHER),
        look(60, 70, "handler", "running", 1),
    ]
    lanes = lanes_of(looks, STACKS, FRAMES, PARENTS | {OTHER: REQUEST})
    assert shown(lanes) == [
        ("handler", 0, [(0, 40, "children"), (50, 60, "children"), (60, 70, "running")]),
        ("child", 1, [(0, 40, "waiting")]),
        ("later", 1, [(50, 60, "waiting")]),
    ]


def test_a_sibling_that_has_not_begun_yet_is_no_awaiter() -> None:
    """Before its first step its stack is shorter; that it waits at the same time tells it from who waits for it."""
    looks = [
        look(0, 10, "handler", "running", 1),
        look(10, 20, "early", "ready", 3),
        look(20, 60, "early", "waiting", 4, QUERY),
        look(20, 110, "late", "waiting", 4, OTHER),
    ]
    lanes = lanes_of(looks, STACKS, FRAMES, PARENTS | {OTHER: REQUEST})
    assert [(lane.task.name, lane.depth) for lane in lanes] == [("handler", 0), ("early", 1), ("late", 1)]


def test_a_span_that_was_never_seen_has_a_lane_when_several_tasks_below_it_were() -> None:
    """It holds them together while they were seen; what is elsewhere, and who waits for whom, stays as it is."""
    above, before = b"A" * 8, b"B" * 8
    looks = [
        look(0, 5, "elsewhere", "running", 6, before),
        look(10, 30, "one", "waiting", 7, REQUEST),
        look(20, 40, "two", "waiting", 1, OTHER),
        look(40, 50, "of two", "waiting", 3, QUERY),
        look(70, 80, "two", "running", 1, OTHER),
    ]
    parents = {above: None, before: None, REQUEST: above, OTHER: above, QUERY: OTHER}
    times = {above: (5 * MS, 75 * MS)}
    found = with_unseen_spans(lanes_of(looks, STACKS | {6: (4,), 7: (5,)}, FRAMES, parents), parents, times)
    assert shown(found) == [
        ("elsewhere", 0, [(0, 5, "running")]),
        ("", 0, [(10, 50, "children"), (70, 75, "children")]),
        ("one", 1, [(10, 30, "waiting")]),
        ("two", 1, [(20, 40, "waiting"), (40, 50, "children"), (70, 80, "running")]),
        ("of two", 2, [(40, 50, "waiting")]),
    ]
    assert [lane.awaited_by and lane.awaited_by.lane for lane in found] == [None, None, None, None, 3]
    assert (found[1].task.span_id, found[1].is_unseen) == (above, True)


def test_one_task_below_a_span_needs_nothing_to_hold_it() -> None:
    """It may be the span's own."""
    looks = [look(0, 5, "t", "running", 1, REQUEST), look(9, 12, "t", "running", 1, OTHER)]
    parents = {b"A" * 8: None, REQUEST: b"A" * 8, OTHER: b"A" * 8}
    found = with_unseen_spans(lanes_of(looks, STACKS, FRAMES, parents), parents, {b"A" * 8: (0, 20 * MS)})
    assert [lane.task.name for lane in found] == ["t"]


def test_a_task_of_another_process_is_no_awaiter() -> None:
    """Its frames may be the same."""
    looks = [look(0, 10, "handler", "running", 1, process=2), look(10, 20, "child", "waiting", 3, QUERY)]
    assert [lane.awaited_by for lane in lanes_of(looks, STACKS, FRAMES, PARENTS)] == [None, None]


def test_the_holder_is_who_ran_while_something_was_ready() -> None:
    """Of any trace; the longest first; what nobody was seen to hold is unexplained."""
    ready = ready_times([look(0, 40, "t", "ready", 1), look(30, 60, "u", "ready", 1), look(60, 70, "t", "running", 1)])
    running = [
        look(0, 25, "hog", "running", 4, OTHER),
        look(25, 30, "hog", "blocked", 3, OTHER),
        look(30, 45, "t", "running", 1),
        look(50, 90, "late", "running", 5, None),
    ]
    held = holders_of(ready, running)
    assert (held.ready_ns, held.unexplained_ns) == (60 * MS, 5 * MS)
    assert [(h.look.task.name, h.total_ns // MS, h.state, h.stack) for h in held.holders] == [
        ("hog", 30, "running", 4),
        ("t", 15, "running", 1),
        ("late", 10, "running", 5),
    ]
    assert sum(h.total_ns for h in held.holders) + held.unexplained_ns == held.ready_ns


def test_a_moment_has_one_holder() -> None:
    """Two that were seen to run at one time do not add up to more than there is."""
    ready = ready_times([look(0, 10, "t", "ready", 1)])
    held = holders_of(ready, [look(0, 8, "a", "running", 1), look(5, 10, "b", "running", 1)])
    assert [(h.look.task.name, h.total_ns // MS) for h in held.holders] == [("a", 8), ("b", 2)]


def test_another_thread_does_not_hold_this_loop() -> None:
    """Nor does another process."""
    ready = ready_times([look(0, 10, "t", "ready", 1)])
    elsewhere = Look(0, 10 * MS, Task(1, "worker", "", b""), "running", None, [(1, 1.0)])
    held = holders_of(ready, [elsewhere, look(0, 10, "a", "running", 1, process=2), look(0, 10, "b", "waiting", 1)])
    assert (held.holders, held.unexplained_ns) == ([], 10 * MS)
