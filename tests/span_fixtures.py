"""Fixtures of the tests that make spans current: a plugin, named by the modules that use it."""

from __future__ import annotations

from collections.abc import Iterator

import opentelemetry.context as otel
import pytest
from reader_helpers import prepare
from span_helpers import STOCK, Runtimes

from otel_asyncprof import _runtime_context


@pytest.fixture
def runtimes() -> Runtimes:
    """A stock runtime context and ours over one variable, of its own for each test."""
    return Runtimes()


@pytest.fixture
def context_of_its_own() -> Iterator[None]:
    """The test begins with an empty current context and leaves the stock runtime context behind."""
    prepare()
    token = otel.attach(otel.Context())
    yield
    _runtime_context.uninstall()
    assert otel._RUNTIME_CONTEXT is STOCK
    otel.detach(token)
