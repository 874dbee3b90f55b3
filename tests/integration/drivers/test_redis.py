"""redis.asyncio against a real Redis: a slow command leads to its request and to the line that asked for it."""

from __future__ import annotations

import pytest
from integration.drivers.runs import Caller, Link, run

REQUEST = ("<module>", "run", "main", "request", "repeat", "handle_request", "load_orders")
LEAF = "StreamReader._wait_for_data"
LINK = Link("redis", "GET /orders")
FIRST = {"pop_order": "Redis.execute_command", "store_orders": "Pipeline.execute"}


@pytest.mark.parametrize("function", FIRST)
def test_a_command_that_waits_for_the_server_leads_to_its_request(function: str, redis: str) -> None:
    """A blocking pop, and a pipeline with DEBUG SLEEP in it."""
    seen = run("redis_queries.py", redis).seen(f"main.<locals>.{function}", "waiting", LEAF)
    assert seen.own == (*REQUEST, f"main.<locals>.{function}")
    assert seen.first == FIRST[function]
    assert seen.link == LINK


def test_a_driver_that_works_on_an_answer_leads_to_its_request(redis: str) -> None:
    """Running in a callback for responses."""
    seen = run("redis_queries.py", redis).seen("main.<locals>.read_order", "running", "burn")
    assert seen.own == (*REQUEST, "main.<locals>.read_order", "decode", "burn")
    assert seen.first == "Redis.execute_command"
    assert seen.link == LINK


@pytest.mark.parametrize("function", FIRST)
def test_the_span_of_a_slow_command_names_the_line_that_asked_for_it(function: str, redis: str) -> None:
    """The first frame outside installed packages, and the way to it."""
    program, name = run("redis_queries.py", redis), f"main.<locals>.{function}"
    expected = Caller(name, program.program, program.line(f"# {function}"), (*REQUEST, name))
    assert program.callers("redis", name, expected.line) == {expected}
