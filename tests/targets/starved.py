"""A task that has to share its CPU with other processes, most of the time."""

import os
import signal

from targets.support import burn, phase

RIVALS = 3


def rival() -> int:
    """A process that wants the same CPU, and ends with its parent at the latest."""
    parent = os.getpid()
    if pid := os.fork():
        return pid
    while os.getppid() == parent:
        pass
    os._exit(0)


async def works() -> None:
    burn(0.2)


async def main() -> None:
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    rivals = [rival() for _ in range(RIVALS)]
    try:
        with phase():
            await works()
    finally:
        for pid in rivals:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
