"""HTTP: FastAPI on uvicorn asks with httpx, aiohttp's server with its client; anyio runs what both are made of."""

from __future__ import annotations

import pytest
from integration.drivers.runs import Caller, Link, run

# program -> what of ours stands below the route, the client, the server
PROGRAMS = {
    "fastapi_httpx.py": (("<module>", "run", "pass_on"), "httpx", "fastapi"),
    "aiohttp_both.py": (("<module>", "run"), "aiohttp_client", "aiohttp_server"),
}
FIRST = {"fastapi_httpx.py": "AsyncClient.get", "aiohttp_both.py": "_BaseRequestContextManager.__aenter__"}
LEAF = {"fastapi_httpx.py": "Event.wait", "aiohttp_both.py": "DataQueue.read"}
ROUTE = {"fastapi_httpx.py": "", "aiohttp_both.py": "main.<locals>."}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    """A framework with a client."""
    name: str = request.param
    return name


def test_a_request_that_waits_for_another_server_leads_to_the_one_that_it_answers(program: str) -> None:
    """From the server's task through the framework to the route, and on into the client."""
    below, client, _ = PROGRAMS[program]
    route = ROUTE[program] + "read_orders"
    seen = run(program).seen(route, "waiting", LEAF[program])
    assert seen.own == (*below, route)
    assert seen.first == FIRST[program]
    assert seen.link == Link(client, "GET /orders")


def test_a_client_that_works_leads_to_the_request(program: str) -> None:
    """Running in a hook of the client's."""
    below, client, _ = PROGRAMS[program]
    route = ROUTE[program] + "read_events"
    seen = run(program).seen(route, "running", "burn")
    assert seen.own == (*below, route, *(("send_event",) if client == "httpx" else ("send_headers",)), "burn")
    assert seen.first == FIRST[program]
    assert seen.link == Link(client, "GET /events")


def test_the_span_of_a_slow_request_names_the_line_that_asked_for_it(program: str) -> None:
    """The first frame outside installed packages, and the way to it."""
    below, client, _ = PROGRAMS[program]
    route = ROUTE[program] + "read_orders"
    expected = Caller(route, program, run(program).line("# read_orders"), (*below, route))
    assert run(program).callers(client, route, expected.line) == {expected}


def test_a_route_in_a_thread_has_the_span_of_its_request() -> None:
    """FastAPI runs functions that are not coroutines in threads, with the context of the request."""
    seen = run("fastapi_httpx.py").seen("write_report", "running", "burn")
    assert seen.own == ("write_report", "burn")
    assert seen.link == Link("fastapi", None)
