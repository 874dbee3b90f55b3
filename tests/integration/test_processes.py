"""More processes than one: each tells of itself alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from assertions import IN_POOL
from conformance import check_request
from integration.applications import Ended, environment, run, run_all
from integration.collectors import COLLECTORS, Collector
from integration.streams import Streams, attribute

DETECTORS = {"OTEL_EXPERIMENTAL_RESOURCE_DETECTORS": "process,service_instance,otel"}


@dataclass
class Forked:
    """What programs/forks.py delivered."""

    ended: Ended
    child_pid: int
    collector: Collector

    @property
    def streams(self) -> Streams:
        """The profiles of both."""
        return Streams(self.collector.profiles)


@pytest.fixture(scope="module", params=COLLECTORS)
def forked(request: pytest.FixtureRequest) -> Iterator[Forked]:
    """One run for all tests that look at it."""
    with COLLECTORS[request.param]() as collector:
        ended = run("forks.py", env=environment(collector, OTEL_ASYNCPROF_INTERVAL="0.4", **DETECTORS))
        assert ended.status == 0, ended.stderr
        child, status = map(int, ended.stdout.split())
        assert status == 5, ended.stderr
        yield Forked(ended, child, collector)


def test_parent_and_child_send_their_own_profiles(forked: Forked) -> None:
    """Nobody else does, each more than once, and nothing is said."""
    sent = {pid: len(requests) for pid, requests in forked.streams.requests.items()}
    assert set(sent) == {forked.ended.pid, forked.child_pid}
    assert min(sent.values()) >= 2
    assert "otel" not in forked.ended.stderr
    for request in forked.collector.profiles:
        check_request(request)


def test_each_process_sees_its_own_work_alone(forked: Forked) -> None:
    """What the parent had seen before the fork is not sent by the child."""
    ours = {"before_the_fork", "in_the_parent", "in_the_child"}
    assert forked.streams.functions(forked.ended.pid) & ours == {"before_the_fork", "in_the_parent"}
    assert forked.streams.functions(forked.child_pid) & ours == {"in_the_child"}


def test_each_process_has_the_resource_of_its_spans(forked: Forked) -> None:
    """Another process id and another instance id in the child, in traces as in profiles."""
    of_profiles = {
        pid: {request.resource_profiles[0].resource.SerializeToString(deterministic=True) for request in requests}
        for pid, requests in forked.streams.requests.items()
    }
    of_traces: dict[int | str, set[bytes]] = {}
    for request in forked.collector.traces:
        resource = request.resource_spans[0].resource
        of_traces.setdefault(attribute(resource, "process.pid"), set()).add(
            resource.SerializeToString(deterministic=True)
        )
    assert of_profiles == of_traces
    assert len(set().union(*forked.streams.instances().values())) == 2


def test_a_child_is_linked_to_its_own_span(forked: Forked) -> None:
    """The span arrived from the child."""
    spans = {
        (int.from_bytes(span.trace_id), int.from_bytes(span.span_id)): span.name
        for request in forked.collector.traces
        for scope in request.resource_spans[0].scope_spans
        for span in scope.spans
    }
    stack = ("<module>", "in_the_child", "sleep")
    waiting = [sample for sample in forked.streams.samples(forked.child_pid) if sample.functions == stack]
    assert {spans[sample.trace_id, sample.span_id] for sample in waiting} == {"child"}
    assert sum(sample.wall_ns for sample in waiting) / 1e9 == pytest.approx(1.5, rel=0.1)


def test_no_profile_is_sent_twice(forked: Forked) -> None:
    """Ids are of the process that gives them, even those after a fork."""
    ids = forked.streams.profile_ids()
    assert len(ids) == len(set(ids))


MACHINERY = ("Runner.run", "BaseEventLoop.run_until_complete", "BaseEventLoop.run_forever", "BaseEventLoop._run_once")
PARENTS_LOOP = ("<module>", "start_the_loop", "run", *MACHINERY, "Handle._run", "main", "fork", "child")
THREAD = (*IN_POOL, "fork", "child")
PLACES = {
    "main": (("<module>", "fork", "child"), ("<module>", "fork", "child"), "MainThread"),
    "thread": (THREAD, THREAD, "asyncio_0"),
    # The loop of the child is run by one that is no loop any more: what stands between the two is not told.
    "coroutine": (PARENTS_LOOP, ("<module>", "start_the_loop"), "MainThread"),
}
if sys.version_info >= (3, 14):  # asyncio lets no loop run in a child that was forked in a task
    del PLACES["coroutine"]


@pytest.mark.parametrize("place", PLACES)
def test_a_child_forked_inside_a_loops_work_has_no_task_of_the_parent(place: str) -> None:
    """Though asyncio goes on to list them; it has its stack and the span that was open."""
    ended = run("forks_inside.py", place, env=environment(), launch="plain")
    assert ended.status == 0, ended.stderr
    stack, entry, thread = PLACES[place]
    select = "EpollSelector.select"
    assert json.loads(ended.stdout) == sorted(
        [
            [[*stack, "run", *MACHINERY, select], thread, True],
            [[*stack, "waits"], thread, True],
            [[*entry, "waits_in_a_loop", "sleep"], thread, True],
        ]
    )


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_last_profile_of_every_process_of_multiprocessing_arrives(method: str) -> None:
    """Of a process, of a pool and of an executor; most end without atexit functions."""
    with COLLECTORS["http"]() as collector:
        ended = run("multiprocesses.py", method, env=environment(collector, **DETECTORS))
    assert ended.status == 0, ended.stderr
    workers = [tuple(map(int, line.split())) for line in ended.stdout.splitlines()]
    assert [status for _, status in workers] == [0, 0, 0]
    streams = Streams(collector.profiles)
    assert streams.who_did("in_a_worker") == {pid for pid, _ in workers}
    assert len(set().union(*streams.instances().values())) == len(streams.pids)
    assert "Traceback" not in ended.stderr


def test_a_spawned_process_is_a_process_like_any_other() -> None:
    """It works, ends with its own status, and is profiled as the process that spawned it."""
    with COLLECTORS["http"]() as collector:
        ended = run("spawns.py", env=environment(collector, **DETECTORS))
    told, child, status = map(int, ended.stdout.split())
    assert (ended.status, ended.stderr) == (0, "")
    assert (told, status) == (child, 5)
    streams = Streams(collector.profiles)
    assert "in_the_new_process" in streams.functions(child)
    assert "in_the_new_process" not in streams.functions(ended.pid)


def test_a_program_that_is_launched_finds_what_it_would_have_found() -> None:
    """The same signals blocked and ignored, open files, environment and limits, in whatever way it is launched."""
    with COLLECTORS["http"]() as collector:
        env = environment(collector, PYTHONWARNINGS="ignore", **DETECTORS)
        alone, profiled = run_all(
            *(partial(run, "launches.py", how, env=env, launch="plain") for how in ("alone", "profiled"))
        )
    assert (alone.status, profiled.status) == (0, 0), profiled.stderr
    assert profiled.stderr == alone.stderr
    assert json.loads(profiled.stdout) == json.loads(alone.stdout)
    assert Streams(collector.profiles).pids == {profiled.pid}


@pytest.mark.parametrize("protocol", COLLECTORS)
def test_no_file_is_written_or_needs_to_be(protocol: str) -> None:
    """Without a home, a directory for temporary files or a writable one at all, and nothing may grow."""
    nowhere = dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"), "/nowhere")
    with COLLECTORS[protocol]() as collector:
        env = environment(collector, PYTHONDONTWRITEBYTECODE="1", **DETECTORS, **nowhere)
        ended = run("without_files.py", env=env, launch="plain")
    assert (ended.status, ended.stdout, ended.stderr) == (0, "\n", "")
    assert [Streams([each]).who_did("in_the_dark") for each in collector.profiles] == [{ended.pid}] * 2
