"""asyncpg and psycopg against a real PostgreSQL: a slow query leads to its request and to the line that asked."""

from __future__ import annotations

import pytest
from integration.drivers.runs import Caller, DriverRun, Link, run

REQUEST = ("<module>", "run", "main", "request", "repeat", "handle_request", "load_orders")

# program -> function: what it calls first, and where its stack ends
WAITING = {
    "asyncpg": {
        "find_orders": ("Connection.fetch", "Connection._do_execute"),  # below that is Cython
        "stream_orders": ("CursorIterator.__anext__", "BaseCursor._bind_exec"),
    },
    "psycopg": {
        "find_orders": ("AsyncConnection.execute", "wait_async"),
        "find_with_cursor": ("AsyncCursor.execute", "wait_async"),
    },
}
RUNNING = {
    "asyncpg": ("Connection.execute", ("encode", "burn")),
    "psycopg": ("AsyncConnection.execute", ("OrderDumper.dump", "burn")),
}
CASES = [(driver, function) for driver, functions in WAITING.items() for function in functions]


@pytest.fixture(scope="module", params=WAITING)
def driver(request: pytest.FixtureRequest) -> str:
    """A driver with an instrumentation of its own."""
    name: str = request.param
    return name


def of(driver: str, postgresql: str) -> DriverRun:
    """Its program, run once."""
    return run(f"{driver}_queries.py", postgresql)


@pytest.mark.parametrize(("driver", "function"), CASES)
def test_a_query_that_waits_for_the_server_leads_to_its_request(driver: str, function: str, postgresql: str) -> None:
    """Suspended: from what started the loop, through the request's task group, down to the driver's own coroutine."""
    first, leaf = WAITING[driver][function]
    seen = of(driver, postgresql).seen(f"main.<locals>.{function}", "waiting", leaf)
    assert seen.own == (*REQUEST, f"main.<locals>.{function}")
    assert seen.first == first
    assert seen.link == Link(driver, "GET /orders")


def test_a_driver_that_works_on_a_parameter_leads_to_its_request(driver: str, postgresql: str) -> None:
    """Running: the same, up to the Python code that the driver calls."""
    first, own = RUNNING[driver]
    seen = of(driver, postgresql).seen("main.<locals>.store_order", "running", "burn")
    assert seen.own == (*REQUEST, "main.<locals>.store_order", *own)
    assert seen.first == first
    assert seen.link == Link(driver, "GET /orders")


@pytest.mark.parametrize(("driver", "function"), CASES)
def test_the_span_of_a_slow_query_names_the_line_that_asked_for_it(driver: str, function: str, postgresql: str) -> None:
    """The first frame outside installed packages, and the way to it."""
    program, name = of(driver, postgresql), f"main.<locals>.{function}"
    line = program.line(f"# {function}")
    assert program.callers(driver, name, line) == {Caller(name, program.program, line, (*REQUEST, name))}
