"""SQLAlchemy's asyncio engine: sync code in greenlets stands between who asked and the driver that waits."""

from __future__ import annotations

import pytest
from assertions import GROUP_END
from integration.drivers.runs import REQUEST, Caller, DriverRun, Link, own_functions, run

HANDLER = ("<module>", "run", "main", "request", "repeat", "handle_request", "load_orders")
SPAWN, CURSOR = "greenlet_spawn", "AsyncAdapt_asyncpg_cursor.execute"
# function -> what SQLAlchemy calls it with, what runs in the greenlet first, and what of ours is in there
WAITING = {
    "find_in_core": ("AsyncConnection.execute", "Connection.execute", ()),
    "find_in_session": ("AsyncSession.execute", "Session.execute", ()),
    "find_in_run_sync": ("AsyncSession.run_sync", "main.<locals>.load_sync", ("load_sync", "select_sync")),
}
RUNNING = {
    "work_in_run_sync": (("main.<locals>.burn_sync", "burn"), "main.<locals>.burn_sync", REQUEST),
    "read_names": (("Name.process_result_value", "burn"), "Session.execute", REQUEST),
    "store_sum": (("encode", "burn"), "Connection.execute", Link("asyncpg", "GET /orders")),
}


@pytest.fixture
def program(postgresql: str) -> DriverRun:
    """Core, sessions and run_sync() over asyncpg."""
    return run("sqlalchemy_queries.py", postgresql)


def in_main(*functions: str) -> tuple[str, ...]:
    """Functions that main() makes."""
    return tuple(f"main.<locals>.{function}" for function in functions)


@pytest.mark.parametrize("function", WAITING)
def test_a_query_that_waits_has_its_caller_and_the_sync_code_on_its_stack(function: str, program: DriverRun) -> None:
    """The request, greenlet_spawn(), the frames of its greenlet, and the coroutine of the driver, in this order."""
    first, in_greenlet, own = WAITING[function]
    seen = program.seen(f"main.<locals>.{function}", "waiting", "PreparedStatement.__do_execute")
    assert seen.own == (*HANDLER, *in_main(function, *own))
    assert seen.first == first
    assert seen.link == Link("asyncpg", "GET /orders")
    below, above = seen.functions[: seen.functions.index(SPAWN)], seen.functions[seen.functions.index(SPAWN) + 1 :]
    assert below == (*HANDLER[:6], *GROUP_END, "load_orders", f"main.<locals>.{function}", first)
    assert above[0] == in_greenlet
    execute = above.index(CURSOR)
    assert above[execute - 1] == "DefaultDialect.do_execute"
    assert above[execute + 2] == "AsyncAdapt_asyncpg_cursor._prepare_and_execute"


@pytest.mark.parametrize("function", RUNNING)
def test_sync_code_that_runs_has_its_caller_on_its_stack(function: str, program: DriverRun) -> None:
    """In the greenlet, where the thread's own stack has no task; and in what the greenlet waits for."""
    own, in_greenlet, link = RUNNING[function]
    seen = program.seen(f"main.<locals>.{function}", "running", "burn")
    assert seen.own == (*HANDLER, f"main.<locals>.{function}", *own)
    assert seen.functions[seen.functions.index(SPAWN) + 1] == in_greenlet
    assert (CURSOR in seen.functions) == (function == "store_sum")
    assert seen.link == link


def test_no_stack_begins_in_a_greenlet(program: DriverRun) -> None:
    """Every sample of the loop's thread begins where the program did."""
    roots = {sample["frames"][0][0] for sample in program.samples if sample["thread"] == "MainThread"}
    assert roots == {"<module>"}


def test_a_greenlet_is_not_taken_for_what_started_the_loop() -> None:
    """Until one of its thread has been seen to wait, its root may be lost: then there is no sample."""
    alone = run("greenlets_alone.py")
    below = {
        "work": [("<module>", "run", "main"), ("thread", "main_of_thread")],
        "pause": [("thread", "main_of_thread")],
    }
    for function, expected in below.items():
        stacks = map(own_functions, alone.samples)
        found = {own[: own.index(function)] for own in stacks if function in own}
        assert found == set(expected)


@pytest.mark.parametrize("scope", ["asyncpg", "sqlalchemy"])
@pytest.mark.parametrize("function", ["find_in_core", "find_in_session", "select_sync"])
def test_the_span_of_a_slow_query_names_the_line_that_asked_for_it(
    scope: str, function: str, program: DriverRun
) -> None:
    """The driver's span begins in a coroutine, SQLAlchemy's own in the greenlet: both have the way to the query."""
    name = f"main.<locals>.{function}"
    own = ("find_in_run_sync", "load_sync", "select_sync") if function == "select_sync" else (function,)
    expected = Caller(name, program.program, program.line(f"# {function}"), (*HANDLER, *in_main(*own)))
    assert program.callers(scope, name, expected.line) == {expected}
