"""Launches a program in every way, and prints as JSON what each finds: its signals, its open files, its surroundings.

usage: launches.py profiled|alone
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from otel_asyncprof import Profiler

# No shell, which unblocks signals.
COMMANDS = [
    ["/usr/bin/env", "grep", "-Eh", "^(Sig[^Q]|Shd|Max)", "/proc/self/status", "/proc/self/limits"],
    ["/usr/bin/env", "ls", "/proc/self/fd"],
    ["/usr/bin/env"],
]


def nothing() -> None:
    pass


def run(command: list[str], **options: Any) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


def through_a_pipe(launch: Callable[[list[str], int], int], command: list[str]) -> str:
    """What a program says that is launched with the end of a pipe as its output."""
    read, write = os.pipe()
    pid = launch(command, write)
    os.close(write)
    with os.fdopen(read) as pipe:
        seen = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return seen


def posix_spawn(command: list[str], output: int) -> int:
    return os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, output, 1)])


def fork_and_exec(command: list[str], output: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.dup2(output, 1)
        os.execv(command[0], command)
    return pid


def in_asyncio(command: list[str]) -> str:
    async def main() -> str:
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, preexec_fn=nothing)
        return (await process.communicate())[0].decode()

    return asyncio.run(main())


WAYS: dict[str, Callable[[list[str]], str]] = {
    "posix_spawn": partial(through_a_pipe, posix_spawn),
    "fork and exec": partial(through_a_pipe, fork_and_exec),
    "subprocess": run,
    "subprocess with a preexec_fn": partial(run, preexec_fn=nothing),
    "subprocess with a preexec_fn and all files": partial(run, preexec_fn=nothing, close_fds=False),
    "subprocess in a session of its own": partial(run, start_new_session=True),
    "asyncio": in_asyncio,
}


def main(profiled: bool) -> None:
    profiler = Profiler(rate=1000)
    if profiled:
        profiler.start_or_raise()
    print(json.dumps({name: [see(command) for command in COMMANDS] for name, see in WAYS.items()}))
    sys.stdout.flush()
    assert profiler.is_running == profiled


main(sys.argv[1] == "profiled")
