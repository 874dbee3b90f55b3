"""Whose code a frame is, and how long a task holds its loop: judged from what a recording says alone."""

from __future__ import annotations

import pytest
from native_tables import Frame as CFrame
from native_tables import StackTable
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from otlp_requests import ALL, TIME, encode

from otel_asyncprof.analysis.findings import percentile
from otel_asyncprof.analysis.holding import longest_hold
from otel_asyncprof.analysis.places import caller_in, is_library
from otel_asyncprof.formats.process_profile import ProcessProfile, process_profiles
from otel_asyncprof.formats.stack_sample import Frame

MS = 1_000_000
PERIOD = 2 * MS


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/app/orders.py", False),
        ("/app/lib/python/orders.py", False),
        ("/app/bin/serve.py", False),
        ("/env/lib/python3.12/site-packages/asyncpg/pool.py", True),
        ("/usr/lib/python3/dist-packages/yaml.py", True),
        ("/root/.pyenv/versions/3.12.1/lib/python3.12/asyncio/tasks.py", True),
        ("/usr/lib64/python3.13t/json/__init__.py", True),
        ("/env/bin/uvicorn", True),
        ("<frozen runpy>", True),
        ("", True),
        ("/env/lib/python3.12/site-packages/otel_asyncprof/demo/app/shop.py", False),
        ("/env/lib/python3.12/site-packages/otel_asyncprof/demo/main.py", True),
    ],
)
def test_a_file_is_told_to_be_a_library_by_its_path(file: str, expected: bool) -> None:
    """The recording may come from another machine."""
    assert is_library(file) is expected


def test_the_caller_is_the_applications_frame_nearest_to_the_leaf() -> None:
    """Where it has none, that of a package; asyncio alone calls nothing."""
    own, driver = Frame("fetch", "/app/a.py", 1, 1), Frame("run", "/env/lib/python3.12/site-packages/d.py", 1, 1)
    assert caller_in([own, driver, own, driver]) == own
    runner = Frame("Runner.run", "/usr/lib/python3.12/asyncio/runners.py", 1, 1)
    assert caller_in([runner, driver, runner]) == driver
    assert caller_in([runner]) is None
    assert caller_in([]) is None


@pytest.mark.parametrize(("share", "expected"), [(0, 1), (0.5, 2), (0.51, 3), (0.95, 4), (1, 4)])
def test_a_percentile_is_a_value_that_was_there(share: float, expected: int) -> None:
    """By the nearest rank."""
    assert percentile([1, 2, 3, 4], share) == expected
    assert percentile([], share) == 0


Look = tuple[int, str, str]  # ms, task ("" for the thread itself), state


def seen(*looks: Look) -> list[ProcessProfile]:
    """The profile of one thread that was seen like that."""
    table = StackTable()
    for time, task, state in looks:
        table.add(
            [CFrame("main"), CFrame(task or "select")],
            thread_name="MainThread",
            thread_id=7,
            task_name=task,
            state=state,
            wall_ns=PERIOD,
            time=TIME + time * MS,
            with_event=True,
        )
    requests = encode(table, attributes=ALL, timeline=True)
    return process_profiles([ProfilesData.FromString(request.SerializeToString()) for request in requests])


def at(task: str, *times: int, state: str = "running") -> list[Look]:
    """Looks at a task that has the loop."""
    return [(time, task, state) for time in times]


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        (at("A", 10, 12, 14, 16), ("A", 6)),
        ([*at("A", 10, 12), *at("A", 14, 16, state="blocked")], ("A", 6)),
        ([*at("A", 10, 12), *at("B", 14), *at("A", 16, 18, 20)], ("A", 4)),
        ([*at("A", 10, 12), (14, "", "waiting"), *at("A", 16)], ("A", 2)),
        ([*at("A", 10, 20, 60, 70, 80)], ("A", 20)),
        ([*at("A", 10, 12, 14), *at("B", 11, 13, state="waiting")], ("A", 4)),
        ([*at("A", 10, state="waiting"), (12, "", "waiting")], None),
        (at("A", 10), ("A", 0)),
    ],
)
def test_a_hold_lasts_while_every_look_sees_the_same_task_at_the_loop(
    looks: list[Look], expected: tuple[str, int] | None
) -> None:
    """Another task, the loop itself or a long time without a look ends it; who waits is not asked."""
    hold = longest_hold(seen(*looks), PERIOD)
    assert (hold and (hold.task_name, hold.least_ns // MS)) == expected
