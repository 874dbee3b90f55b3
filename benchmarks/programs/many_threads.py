"""200 threads, of which four work in short turns and the others wait; the main thread runs an idle loop."""

import threading
import time

from programs.run import Run, main, work

THREADS = 200
BUSY = 4


class Turns:
    """Counts the work of one thread, so that no count is lost between threads."""

    def __init__(self) -> None:
        self.done = 0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while True:
            work()
            self.done += 1
            time.sleep(0)


async def program(run: Run) -> None:
    never = threading.Event()
    waiting = [threading.Thread(target=never.wait, daemon=True) for _ in range(THREADS - BUSY)]
    turns = [Turns() for _ in range(BUSY)]
    run.threads = [*waiting, *(turn.thread for turn in turns)]
    run.count_units = lambda: sum(turn.done for turn in turns)
    for thread in run.threads:
        thread.start()
    await run.measure()


if __name__ == "__main__":
    main(program)
