"""The span of the running task, read from another process by the rules of OTEPs 4719 and 4947."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from integration.applications import PROGRAMS, environment
from integration.outside_reader import Process, ProcessContext

NOT_PUBLISHED = "the thread context is not published: "
HAS_WATCHERS = pytest.mark.skipif(sys.version_info < (3, 12), reason="CPython 3.11 does not tell of changes of a dict")
CAN_BE_READ = pytest.mark.skipif(platform.machine() != "x86_64", reason="the reader knows x86-64 alone")
ATTRIBUTES = {"threadlocal.schema_version": "tlsdesc_v1_dev", "threadlocal.attribute_key_map": []}
PLACES = [
    "in a span",
    "in a span within",
    "in a task without a span",
    "in the span again",
    "after the span",
    "in an eager step",
    "after an eager step",
    "in the eager task's second step",
    "after an eager task",
    "in a thread",
    "in a child",
    "when it has ended",
]


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """The program, with the arguments of the test."""
    arguments = getattr(request, "param", [])
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(PROGRAMS / "thread_context.py"), *arguments]
    variables = environment(None, OTEL_SERVICE_NAME="shown")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=variables, text=True, **pipes) as process:
        yield process
        process.kill()


def looked_at(program: subprocess.Popen[str]) -> Iterator[tuple[dict[str, Any], ProcessContext | None, Any]]:
    """Each place where the program stops: what it says there, and what is to be seen from outside."""
    assert program.stdin is not None
    assert program.stdout is not None
    while line := program.stdout.readline():
        told = json.loads(line)
        with closing(Process(told["pid"])) as process:
            context = process.context()
            yield told, context, process.span(told["thread"]) if context else None
        program.stdin.write("\n")
        program.stdin.flush()


@HAS_WATCHERS
@CAN_BE_READ
def test_a_reader_outside_sees_the_span_of_the_running_task(program: subprocess.Popen[str]) -> None:
    """At each switch of tasks and spans, in threads and in the child of a fork; nothing once the profiler has ended."""
    seen = {}
    for told, context, span in looked_at(program):
        ended = told["place"] == "when it has ended"
        assert span == (None if ended else told["span"]), told["place"]
        seen[told["place"]] = told["span"]
        if ended:
            assert context is None
            continue
        assert context is not None
        assert context.resource["service.name"] == "shown"
        assert context.resource.get("process.pid", told["pid"]) == told["pid"]  # the SDK adds it in the child of a fork
        assert context.attributes == {
            "threadlocal.schema_version": "tlsdesc_v1_dev",
            "threadlocal.attribute_key_map": [],
        }
    assert sorted(seen) == sorted(PLACES)
    assert (
        seen["in a task without a span"] != seen["in a span"] == seen["in the span again"] != seen["in a span within"]
    )
    assert (program.wait(), program.stderr.read() if program.stderr else None) == (0, "")


@HAS_WATCHERS
@pytest.mark.parametrize("program", [["owned"]], indirect=True)
def test_it_gives_way_to_another_component(program: subprocess.Popen[str]) -> None:
    """One line; that one's process context stays as it is, and the profile goes on."""
    for told, context, _ in looked_at(program):
        assert context is None
        if told["place"] == "in a span":
            maps = Path(f"/proc/{told['pid']}/maps").read_text()
            assert maps.count("OTEL_CTX") == 1
    assert program.wait() == 0
    assert program.stderr is not None
    assert program.stderr.read() == f"{NOT_PUBLISHED}another component does that in this process\n"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="CPython tells of changes of a dict since 3.12")
def test_where_it_cannot_be_one_line_says_so(program: subprocess.Popen[str]) -> None:
    """And the profile goes on."""
    assert {context for _, context, _ in looked_at(program)} == {None}
    assert program.wait() == 0
    assert program.stderr is not None
    assert program.stderr.read() == f"{NOT_PUBLISHED}this version of CPython does not tell of changes\n"
