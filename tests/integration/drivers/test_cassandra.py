"""Cassandra's driver: its reactor thread completes asyncio futures, and its spans end when a request is sent."""

from __future__ import annotations

from integration.drivers.runs import REQUEST, Seen, run

FIND = "main.<locals>.find_orders"
OWN = ("<module>", "run", "main", "request", "repeat", "handle_request", "load_orders", FIND)


def test_a_statement_that_waits_for_the_server_leads_to_its_request(cassandra: str) -> None:
    """The driver's span ends once the request is sent, so that the wait belongs to the request's span."""
    seen = run("cassandra_queries.py", cassandra).seen(FIND, "waiting", FIND)
    assert seen.own == OWN
    assert seen.first is None
    assert seen.link == REQUEST


def test_the_reactor_thread_shows_what_it_works_on(cassandra: str) -> None:
    """Rows are made in a thread of the driver's, which has no span."""
    seen = run("cassandra_queries.py", cassandra).seen("make_row", "running", "burn")
    assert seen == Seen(own=("make_row", "burn"), first="burn", link=None, functions=seen.functions)
    assert seen.functions[0] == "Thread._bootstrap"


def test_every_statement_has_its_span_below_the_request(cassandra: str) -> None:
    """Too short for a caller to be written into it."""
    program = run("cassandra_queries.py", cassandra)
    spans = [span for span in program.spans.values() if span["scope"].endswith(".cassandra")]
    assert spans
    assert {program.spans[span["parent"]]["name"] for span in spans} == {"GET /orders"}
