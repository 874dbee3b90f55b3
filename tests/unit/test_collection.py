"""What lies between the sampler and the exporter: everything is exported once, whoever has looked at it before."""

from __future__ import annotations

import gc

from otel_asyncprof import _collection


class Seen:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    def add(self, requests: list[bytes]) -> None:
        self.requests += requests


class Broken:
    """Fails at everything."""

    def add(self, requests: list[bytes]) -> None:
        raise RuntimeError("boom")


def collection_of(*intervals: bytes) -> _collection.Collection:
    """One that collects these, one after the other, then nothing."""
    rest = list(intervals)
    return _collection.begin(lambda: [rest.pop(0)] if rest else [])


def test_what_was_looked_at_is_exported_with_the_next_interval_once() -> None:
    """In the order in which it was collected; listeners see all of it once."""
    seen = Seen()
    _collection.listen(seen)
    collection = collection_of(b"one", b"two", b"three")
    assert _collection.look()
    assert _collection.look()
    assert collection.take() == [b"one", b"two", b"three"]
    assert collection.take() == []
    assert seen.requests == [b"one", b"two", b"three"]


def test_who_is_content_with_what_was_just_seen_causes_no_further_collection() -> None:
    """So that many responses at the same time do not become as many messages to export."""
    collection = collection_of(b"one", b"two")
    assert _collection.look(3600)
    assert _collection.look(3600)
    assert _collection.look()
    assert _collection.look(3600)
    assert collection.take() == [b"one", b"two"]
    collection = collection_of(b"one", b"two")
    assert collection.take() == [b"one"]
    assert _collection.look(3600)
    assert collection.take() == [b"two"]


def test_a_listener_that_fails_takes_nothing_from_the_others() -> None:
    """Nor from the exporter."""
    broken, seen = Broken(), Seen()
    _collection.listen(broken)
    _collection.listen(seen)
    assert collection_of(b"one").take() == [b"one"]
    assert seen.requests == [b"one"]


def test_nobody_listens_longer_than_he_lives_and_no_collection_outlives_its_profiler() -> None:
    """Applications come and go in tests."""
    seen = Seen()
    _collection.listen(seen)
    requests = seen.requests
    del seen
    gc.collect()
    collection = collection_of(b"one")
    assert collection.take() == [b"one"]
    assert requests == []
    del collection
    gc.collect()
    assert not _collection.look()
