"""Launches a program in every way, and prints as JSON what each finds: its signals, its open files, its surroundings.

usage: launches.py profiled|alone
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable

from otel_asyncprof import Profiler

LOOK = "grep -E '^(Sig|Shd)(Blk|Ign|Cgt|Pnd)' /proc/self/status; ls /proc/self/fd; env | sort; ulimit -a"
COMMAND = ["/bin/sh", "-c", LOOK]


def nothing() -> None:
    pass


def run(**options: object) -> Callable[[], str]:
    return lambda: subprocess.run(COMMAND, stdout=subprocess.PIPE, text=True, check=True, **options).stdout  # type: ignore[call-overload, no-any-return]


def through_a_pipe(launch: Callable[[int], int]) -> Callable[[], str]:
    """What a program says that is launched with the end of a pipe as its output."""

    def see() -> str:
        read, write = os.pipe()
        pid = launch(write)
        os.close(write)
        with os.fdopen(read) as pipe:
            seen = pipe.read()
        assert os.waitpid(pid, 0)[1] == 0
        return seen

    return see


def posix_spawn(output: int) -> int:
    return os.posix_spawn(COMMAND[0], COMMAND, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, output, 1)])


def fork_and_exec(output: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.dup2(output, 1)
        os.execv(COMMAND[0], COMMAND)
    return pid


def in_asyncio() -> str:
    async def main() -> str:
        process = await asyncio.create_subprocess_exec(*COMMAND, stdout=subprocess.PIPE, preexec_fn=nothing)
        return (await process.communicate())[0].decode()

    return asyncio.run(main())


WAYS = {
    "posix_spawn": through_a_pipe(posix_spawn),
    "fork and exec": through_a_pipe(fork_and_exec),
    "subprocess": run(),
    "subprocess with a preexec_fn": run(preexec_fn=nothing),
    "subprocess with a preexec_fn and all files": run(preexec_fn=nothing, close_fds=False),
    "subprocess in a session of its own": run(start_new_session=True),
    "asyncio": in_asyncio,
}


def main(profiled: bool) -> None:
    profiler = Profiler(rate=1000)
    if profiled:
        profiler.start_or_raise()
    print(json.dumps({name: see() for name, see in WAYS.items()}))
    sys.stdout.flush()
    assert profiler.is_running == profiled


main(sys.argv[1] == "profiled")
