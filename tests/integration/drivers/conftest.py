"""Servers that live as long as the tests of one file need them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from integration.drivers import cql_stub, servers


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The folder of PostgreSQL's socket."""
    with servers.postgresql() as where:
        yield where


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    """Redis' socket."""
    with servers.redis() as socket:
        yield socket


@pytest.fixture(scope="module")
def cassandra() -> Iterator[str]:
    """The port of something that speaks Cassandra's protocol."""
    with cql_stub.serving() as port:
        yield str(port)
