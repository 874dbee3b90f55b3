"""Applications that embed Python: an interpreter ends in a process that lives on, and another begins."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import otel_asyncprof

HERE = Path(__file__).parent
LIBRARY = Path(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or "none")
LIMIT_SECONDS, ROUNDS = 120, 2
PROGRAM = """
import asyncio, sys
from opentelemetry.sdk.trace import TracerProvider
from otel_asyncprof import Profiler
from otel_asyncprof.export.in_memory import InMemoryProfileExporter
tracer = TracerProvider().get_tracer("embedded")
async def main():
    with tracer.start_as_current_span("job"):
        await asyncio.gather(*[asyncio.sleep(0.05) for _ in range(10)])
exporter = InMemoryProfileExporter()
profiler = Profiler(rate=1000, exporter=exporter)
started = profiler.start()
asyncio.run(main())
assert profiler.shutdown() or not started
print(started, bool(exporter.get_finished_requests()), flush=True)
"""


@pytest.mark.skipif(not LIBRARY.is_file(), reason="this build of CPython has no shared library to embed")
def test_the_first_interpreter_of_a_process_is_profiled_and_a_later_one_is_refused(tmp_path: Path) -> None:
    """In one line, since what the extension keeps is of the first; neither comes to harm."""
    embedding = tmp_path / "embedding"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, HERE / "embedding.c", "-o", embedding, "-ldl"], check=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON"))}
    paths = [str(Path(otel_asyncprof.__file__).parents[1]), *filter(None, sys.path)]  # it may be installed by a finder
    environment = own | {"PYTHONHOME": sys.base_prefix, "PYTHONPATH": os.pathsep.join(paths)}

    def run(program: str) -> subprocess.CompletedProcess[str]:
        command = [embedding, LIBRARY, program, str(ROUNDS)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)

    if run("import asyncio, ssl").returncode:
        pytest.skip("this CPython crashes when it is initialized twice, with or without us")  # 3.12.1
    ended = run(PROGRAM)
    refusal = (
        "otel_asyncprof does not profile this process: "
        "the interpreter was finalized and initialized again, which is not supported; use the first one\n"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True True\nFalse False\n", refusal)
