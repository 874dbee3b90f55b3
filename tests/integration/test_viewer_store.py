"""What the viewer keeps, for how long, and where."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from recordings import MS, TRACE, recording, span, traces
from viewer_client import Client, running_viewer, until

from otel_asyncprof.formats.recording import Recording, to_recording
from otel_asyncprof.viewer import api, reading
from otel_asyncprof.viewer.counts import Counts
from otel_asyncprof.viewer.decoding import Batch, decoded_traces
from otel_asyncprof.viewer.reading import Reader, TraceData
from otel_asyncprof.viewer.retention import used_bytes
from otel_asyncprof.viewer.server import CannotStart, Viewer, ViewerOptions
from otel_asyncprof.viewer.store import Limits, Store, StoreFull

DAY_NS = 24 * 3600 * 10**9
NO_RECEIVERS = {"grpc_port": None, "http_port": None}


def many(n: int, *, at_ns: int, text: str = "x" * 200, first: int = 0) -> Batch:
    """A batch of traces of one span, a millisecond apart."""
    batch = Batch()
    for number in range(first, first + n):
        root = span(number.to_bytes(8, "big", signed=False) or b"", f"op {number % 5}", 0, 5, note=text)
        root.trace_id, root.span_id = (number + 1).to_bytes(16), (number + 1).to_bytes(8)
        root.start_time_unix_nano = at_ns + number * MS
        root.end_time_unix_nano = root.start_time_unix_nano + MS
        batch.spans += decoded_traces(traces(root)).spans
    return batch


def test_what_was_received_is_there_after_a_new_start(tmp_path: Path) -> None:
    """In the file, which nobody else may read."""
    database = str(tmp_path / "new" / "viewer.db")
    with running_viewer(database=database, **NO_RECEIVERS) as client:
        client.load(recording())
        before = client.get("/api/traces")["traces"]
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o700
    assert sqlite3.connect(database).execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with running_viewer(database=database, **NO_RECEIVERS) as client:
        assert client.get("/api/traces")["traces"] == before


def test_in_memory_nothing_is_written_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On request."""
    monkeypatch.chdir(tmp_path)
    with running_viewer(**NO_RECEIVERS) as client:
        client.load(recording())
        assert client.get("/api/status")["database"] == ":memory:"
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """The viewer does not start, and says which file it is."""
    path = tmp_path / "mine.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine(x)")
    connection.commit()
    connection.close()
    with pytest.raises(CannotStart, match=r"mine\.db cannot be used: it is a database of something else"):
        Viewer(ViewerOptions(database=str(path), ui_port=0, **NO_RECEIVERS))
    assert sqlite3.connect(path).execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    path.write_text("no database at all, but long enough to be looked at" * 100)
    with pytest.raises(CannotStart, match="cannot be used"):
        Viewer(ViewerOptions(database=str(path), ui_port=0, **NO_RECEIVERS))


def test_a_database_where_nothing_can_be_made_is_one_clear_reason(tmp_path: Path) -> None:
    """In place of a folder there is a file; :memory: needs none."""
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart) as refusal:
        Viewer(ViewerOptions(database=str(tmp_path / "file" / "viewer.db"), ui_port=0, **NO_RECEIVERS))
    assert str(refusal.value).endswith(
        "viewer.db cannot be used: File exists; say another --db, or --db :memory: to keep nothing"
    )


def test_tables_of_an_older_viewer_are_made_anew(tmp_path: Path) -> None:
    """What is in them cannot be read any more."""
    database = str(tmp_path / "viewer.db")
    with running_viewer(database=database, **NO_RECEIVERS) as client:
        client.load(recording())
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version=77")
    connection.commit()
    connection.close()
    with running_viewer(database=database, **NO_RECEIVERS) as client:
        assert client.get("/api/status")["spans"] == 0
        client.load(recording())
        assert client.get("/api/status")["spans"] == 2


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An open store whose limits the test lowers."""
    path = str(tmp_path / "viewer.db") if request.param == "file" else ":memory:"
    made = Store(path, Limits(size_bytes=1 << 40, retain_ns=DAY_NS))
    made.start()
    yield made
    made.close()


def pruned(store: Store, limits: Limits) -> None:
    """Applies limits now."""
    store.limits = limits
    store.run(lambda connection: None)


def count(store: Store, table: str = "trace") -> int:
    """Rows of a table."""
    with store.reading() as connection:
        n: int = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        return n


def test_what_is_too_old_goes_with_all_that_belongs_to_it(store: Store) -> None:
    """Spans, details, statements and resources; what is young stays."""
    now = time.time_ns()
    store.add(many(20, at_ns=now - 2 * DAY_NS))
    store.add(many(30, at_ns=now, first=100))
    assert store.flush()
    pruned(store, Limits(1 << 40, DAY_NS))
    assert [count(store, table) for table in ("trace", "span", "detail", "resource")] == [30, 30, 30, 1]


def test_samples_of_old_traces_go_with_their_stacks_and_frames(tmp_path: Path) -> None:
    """Nothing is left of a recording that is too old."""
    with running_viewer(**NO_RECEIVERS) as client:
        client.viewer.store.limits = Limits(1 << 40, 100 * 365 * DAY_NS)
        client.load(recording())
        store = client.viewer.store
        assert count(store, "stack") > 0
        pruned(store, Limits(1 << 40, DAY_NS))
        tables = ("trace", "span", "detail", "sample", "stack", "frame", "query", "resource")
        assert [count(store, table) for table in tables] == [0] * 8


def test_when_there_is_too_much_the_oldest_traces_go(store: Store) -> None:
    """Until the rest fits; the newest is still there, and the file has shrunk."""
    now = time.time_ns()
    store.add(many(800, at_ns=now, text="y" * 3000))
    assert store.flush()
    with store.reading() as connection:
        full = used_bytes(connection)
    pruned(store, Limits(full // 2, DAY_NS))
    with store.reading() as connection:
        assert used_bytes(connection) <= full // 2
        left = [row[0] for row in connection.execute("SELECT start_ns FROM trace ORDER BY start_ns")]
    assert 0 < len(left) < 800
    assert left[-1] == now + 799 * MS
    assert left == [now + (800 - len(left) + n) * MS for n in range(len(left))]
    if not store.in_memory:
        assert os.path.getsize(store.path) <= full // 2 + (1 << 20)


def test_more_than_can_wait_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And counted; what waits is written all the same."""
    monkeypatch.setattr("otel_asyncprof.viewer.store.MAX_QUEUED", 50)
    store = Store(":memory:")
    store.add(many(40, at_ns=time.time_ns()))
    with pytest.raises(StoreFull):
        store.add(many(40, at_ns=time.time_ns()))
    assert store.rejected["requests"] == 1
    store.start()
    assert store.flush()
    assert count(store, "span") == 40
    store.close()


def test_what_cannot_be_written_is_said_and_the_viewer_goes_on(tmp_path: Path) -> None:
    """A full disk, for one."""
    with running_viewer(**NO_RECEIVERS) as client:
        store = client.viewer.store
        store.run(lambda connection: connection.execute("DROP TABLE detail") and None)
        store.add(many(1, at_ns=time.time_ns()))
        assert store.flush()
        store.run(lambda connection: None)  # what goes well later is not what went wrong
        (note,) = client.get("/api/status")["notes"]
        assert note == "the database cannot be written: no such table: detail"


def test_a_trace_that_grows_has_its_summary_worked_out_again() -> None:
    """The list is right after each part."""
    with running_viewer(**NO_RECEIVERS) as client:
        full = recording()
        client.load(Recording([], full.traces))
        assert listed(client) == 90_000
        client.load(Recording(full.profiles, []))
        assert listed(client) == 10_000
        with client.viewer.store.reading() as connection:
            row = connection.execute("SELECT samples FROM trace WHERE trace_id = ?", (TRACE,)).fetchone()
        assert row == (10,)


def listed(client: Client) -> int:
    """The part of the only trace that was not sampled."""
    (row,) = client.get("/api/traces")["traces"]
    part: int = row["split"]["not_sampled_us"]
    return part


def test_a_large_trace_is_worked_out_before_anybody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon after its last change; the first to ask gets what lies ready."""
    made: list[bytes] = []
    whole = api.trace_json

    def counted(connection: sqlite3.Connection, reader: Reader, data: TraceData) -> dict[str, Any]:
        made.append(data.trace_id)
        return whole(connection, reader, data)

    monkeypatch.setattr(api, "trace_json", counted)
    monkeypatch.setattr(reading, "MANY_SPANS", 2)
    with running_viewer(**NO_RECEIVERS) as client:
        client.load(recording())
        assert until(lambda: len(made) > 0)
        assert len(client.get(f"/api/traces/{TRACE.hex()}")["spans"]) == 2
        assert made == [TRACE]


def test_a_large_trace_that_grows_is_answered_as_it_was_last_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody waits for it; the whole of it is there soon after."""
    monkeypatch.setattr(reading, "MANY_SPANS", 2)
    with running_viewer(**NO_RECEIVERS) as client:
        client.load(recording())
        path = f"/api/traces/{TRACE.hex()}"
        store, settle = client.viewer.store, client.viewer.store.settle
        assert until(lambda: settled(client))
        assert len(client.get(path)["spans"]) == 2
        store.settle = None
        client.load(Recording([], [traces(span(b"N" * 8, "new", 0, 1))]))
        assert (len(client.get(path)["spans"]), count(store, "span")) == (2, 3)
        store.settle = settle
        assert until(lambda: len(client.get(path)["spans"]) == 3)


def settled(client: Client) -> bool:
    """Whether nothing is left to be worked out."""
    with client.viewer.store.reading() as connection:
        left: int = connection.execute("SELECT COUNT(*) FROM trace WHERE summary IS NULL").fetchone()[0]
    return left == 0


def test_summaries_are_worked_out_while_more_keeps_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only when it ends."""
    monkeypatch.setattr("otel_asyncprof.viewer.store.MAX_UNSETTLED_SECONDS", 0.05)
    with running_viewer(**NO_RECEIVERS) as client:
        store, worked_out = client.viewer.store, client.viewer.store.settle
        assert worked_out is not None
        waiting: list[int] = []

        def settle(connection: sqlite3.Connection, most: int) -> int:
            waiting.append(len(store._waiting))
            return worked_out(connection, most)

        store.settle = settle
        numbers = iter(range(1_000_000))

        def settled_beside_others() -> bool:
            for _ in range(20):
                store.add(many(5, at_ns=time.time_ns(), first=5 * next(numbers)))
            return any(waiting)

        assert until(settled_beside_others)


def test_the_caller_from_samples_is_the_same_before_and_after_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """At first it is looked up, then it stands with its span; more samples may change it."""
    with running_viewer(**NO_RECEIVERS) as client:
        store, settle = client.viewer.store, client.viewer.store.settle
        store.settle = None
        full = recording()
        client.load(full)
        before = asked_by(client)
        assert before == [("fetch_lines", False, 1)] * 2
        store.settle = settle
        assert until(lambda: settled(client))
        assert count(store, "span WHERE sampled_caller IS NOT NULL") == 1
        assert asked_by(client) == before
        store.settle = None
        client.load(Recording(full.profiles, []))
        assert count(store, "span WHERE sampled_caller IS NOT NULL") == 0
        assert asked_by(client) == before


def asked_by(client: Client) -> list[tuple[str, bool, int]]:
    """The callers of the only statement, in the list and on its own page."""
    (query,) = client.get("/api/queries")["queries"]
    found = query["callers"] + client.get(f"/api/queries/{query['query_id']}")["all_callers"]
    return [(one["caller"]["function"], one["caller"]["exact"], one["runs"]) for one in found]


def test_more_runs_than_can_be_added_up_are_those_of_the_newest_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list says since when; with fewer it says nothing."""
    monkeypatch.setattr("otel_asyncprof.viewer.query_sums.MAX_RUNS", 3)
    with running_viewer(**NO_RECEIVERS) as client:
        for number in range(1, 4):
            runs = [span(bytes([number, n] * 4), "SELECT", number, 9, db__query__text="SELECT 1") for n in (1, 2)]
            for one in runs:
                one.trace_id = bytes([number] * 16)
            client.load(Recording([], [traces(*runs)]))
        start_us = runs[0].start_time_unix_nano // 1000
        found = client.get("/api/queries")
        assert (found["since_us"], [query["runs"] for query in found["queries"]]) == (start_us - 1000, [4])
        found = client.get("/api/queries", since_us=start_us)
        assert (found["since_us"], [query["runs"] for query in found["queries"]]) == (None, [2])


def test_a_statement_with_very_many_runs_shows_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says how many it leaves out; the list counts them all."""
    monkeypatch.setattr("otel_asyncprof.viewer.query_answers.MAX_RUNS", 3)
    runs = [span(bytes([n] * 8), "SELECT", n, n + n, db__query__text="SELECT 1") for n in range(1, 6)]
    with running_viewer(**NO_RECEIVERS) as client:
        client.load(Recording([], [traces(*runs)]))
        (listed_,) = client.get("/api/queries", sort="-p95")["queries"]
        assert (listed_["runs"], listed_["total_us"], listed_["p50_us"], listed_["max_us"]) == (5, 15_000, 3_000, 5_000)
        found = client.get(f"/api/queries/{listed_['query_id']}")
        assert (found["runs"], found["older_runs"], found["p50_us"], len(found["slowest"])) == (3, 2, 4_000, 3)


def test_counting_much_is_done_less_often() -> None:
    """A count that took long is told again for twenty times as long; one that took no time never."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE trace(spans, samples)")
    connection.execute("CREATE TABLE sample(n)")
    counts = Counts()
    assert counts.now(connection, 1)["spans"] == 0
    connection.execute("INSERT INTO trace VALUES (1, 0)")
    assert counts.now(connection, 1)["spans"] == 0
    assert until(lambda: counts.now(connection, 2)["spans"] == 1)
    counts.known = (2, time.monotonic() + 3600, {"spans": 7})
    assert counts.now(connection, 3)["spans"] == 7


def test_a_recording_waits_until_there_is_room_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is there in the end, however much is written at the time."""
    add, is_full = Store.add, cycle([True, False])

    def full_at_first(store: Store, batch: Batch) -> None:
        if next(is_full):
            raise StoreFull
        add(store, batch)

    monkeypatch.setattr(Store, "add", full_at_first)
    with running_viewer(**NO_RECEIVERS) as client:
        reply = client.page("POST", "/api/import", to_recording(recording()))
        assert (reply.status, reply.json) == (200, {"spans": 2, "samples": 11})
