"""Names, objects, graphs and limits made to do harm: the profile says what is there, and nothing else happens."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reader_helpers import as_read
from targets.hostile_names import FIRST_LINE, NAMES

MAX_THREAD_NAME = 256
MAX_ATTRIBUTE = 2048  # what receivers take
MAX_AWAITING_TASKS = 256
TARGETS = Path(__file__).resolve().parents[1] / "targets"


@pytest.fixture(scope="module")
def named(results: Callable[..., dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """The samples of everything with a hostile name, by the place of that name."""
    result = results(target="hostile_names", loop="asyncio", capture="own", options={})
    assert result["report"]["types"] == ["Text", "str"]
    found = defaultdict(list)
    for sample in result["report"]["captures"][0]["samples"]:
        for function, file, _, first_line in sample["frames"]:
            if first_line in range(FIRST_LINE, FIRST_LINE + len(NAMES)):
                found[first_line - FIRST_LINE].append(sample | {"function": function, "file": file})
    return found


def as_kept(name: str, most: int) -> str:
    """As much of a name as is kept where it is an attribute."""
    read = as_read(name).encode()
    kept = read if len(read) <= most else read[: most - 3].decode(errors="ignore").encode() + "…".encode()
    return kept.decode(errors="ignore")


@pytest.mark.parametrize("place", range(len(NAMES)), ids=NAMES.keys())
def test_hostile_names_are_exact(named: dict[int, list[dict[str, Any]]], place: int) -> None:
    """Of functions, files, tasks, threads and spans; too long ones end in an ellipsis."""
    name = list(NAMES.values())[place]
    samples = named[place]
    assert {(sample["function"], sample["file"]) for sample in samples} == {(as_read(name), as_read(f"/srv/{name}.py"))}
    waiting = [sample for sample in samples if sample["thread_name"] == "MainThread"]
    resting = [sample for sample in samples if sample["thread_name"] != "MainThread"]
    kept = as_kept(name, MAX_ATTRIBUTE) or None
    assert {(sample["task_name"], sample["local_root_name"]) for sample in waiting} == {(kept, kept)}
    threads = {sample["thread_name"] for sample in resting}
    assert len(threads) == 1
    if name:
        assert threads == {as_kept(name, MAX_THREAD_NAME)}


def program(
    name: str, *arguments: str, limits: dict[int, int] | None = None, within: list[str] | None = None, **variables: str
) -> Any:
    """Runs a target as a program of its own, under limits and within a command; gives the JSON that it prints."""

    def limit() -> None:
        for resource_limit, value in (limits or {}).items():
            resource.setrlimit(resource_limit, (value, resource.getrlimit(resource_limit)[1]))

    env = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")} | variables
    command = [*(within or []), sys.executable, str(TARGETS / name), *arguments]
    done = subprocess.run(command, env=env, preexec_fn=limit, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout.splitlines()[-1])


# From 3.14 on a thread with less cannot begin: the interpreter keeps more of its stack in reserve.
SMALLEST_STACK = (64 if sys.version_info >= (3, 14) else 32) << 10
ALL_OF_IT = [
    "descends",
    "gathers > in_a_span > waits > sleep linked",
    "rests > Event.wait > Condition.wait",
    "spins",
]
UNDER_LIMITS: dict[str, tuple[list[str], dict[int, int], dict[str, str]]] = {
    "the smallest stacks, a context of 100,000 variables": ([f"stack={SMALLEST_STACK}", "variables=100000"], {}, {}),
    "a stack limit of 128 kB, no descriptor left": (["files"], {resource.RLIMIT_STACK: 128 << 10}, {}),
    "no stack limit, no recursion limit": (
        ["recursion=1000000000"],
        {resource.RLIMIT_STACK: resource.RLIM_INFINITY},
        {},
    ),
    "little address space, a debugging allocator": ([], {resource.RLIMIT_AS: 500 << 20}, {"PYTHONMALLOC": "debug"}),
    "the system's allocator": (["stack=65536"], {}, {"PYTHONMALLOC": "malloc"}),
}


@pytest.mark.parametrize("case", UNDER_LIMITS)
def test_under_hard_limits_the_profile_is_the_same(case: str) -> None:
    """Whatever the threads of the application have, ours have what an exporter needs."""
    arguments, limits, variables = UNDER_LIMITS[case]
    report = program("under_limits.py", *arguments, limits=limits, **variables)
    stack = next((int(each.removeprefix("stack=")) for each in arguments if each.startswith("stack=")), 0)
    assert report == {"seen": ALL_OF_IT, "complete": True, "stack": stack}


BARE_NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
BARE = "mount -t tmpfs -o ro none /proc && mount -t tmpfs -o ro none /dev/shm && mount -o remount,bind,ro / && "


def test_without_proc_on_a_read_only_root_the_profile_is_the_same() -> None:
    """As in a sandbox or a minimal container."""
    within = [*BARE_NAMESPACE, "sh", "-c", BARE + 'exec "$@"', "sh"]
    bare = "import os; assert not os.path.exists('/proc/self')"
    if subprocess.run([*within, sys.executable, "-c", bare], capture_output=True).returncode != 0:
        pytest.skip("mount namespaces are refused here, or this build of Python does not begin without /proc")
    report = program("under_limits.py", within=within, PYTHONDONTWRITEBYTECODE="1")
    assert report == {"seen": ALL_OF_IT, "complete": True, "stack": 0}


def test_graphs_and_objects_without_an_end_are_bounded() -> None:
    """20,000 tasks in a row, tasks that await themselves, a task that answers nothing: R7, R10."""
    report = program("hostile_graphs.py", "20000")
    seen = report["seen"]
    assert (seen["below"], seen["plain"], seen["silent"]) == (["awaits > leaf"], ["silent"], ["silent"])
    assert all(len(stack.split(" > ")) <= 128 for stack in seen.get("leaf", []))
    assert "link" not in seen
    assert report["visits"] <= 1 + MAX_AWAITING_TASKS  # for each task that is looked at, whatever its chain
