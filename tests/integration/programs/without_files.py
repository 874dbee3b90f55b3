"""Works under a profiler where no file can be written, and prints what was opened to be written, made or renamed."""

import os
import resource
import sys
import time

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MAKES = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.truncate", "os.chmod", "tempfile.mkstemp"}
written: list[str] = []


def note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & WRITES:
            written.append(f"open {path}")
    elif event in MAKES:
        written.append(f"{event} {arguments[0]}")


def in_the_dark() -> None:
    end = time.thread_time() + 0.15
    while time.thread_time() < end:
        pass


resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
os.chdir("/proc")  # where not even root makes a file
sys.addaudithook(note)

from otel_asyncprof import Profiler  # noqa: E402

profiler = Profiler()
profiler.start_or_raise()
in_the_dark()
assert profiler.force_flush()
in_the_dark()
assert profiler.shutdown()
print("\n".join(written))
