"""Tasks that move while a tick looks at them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from native.headers import headers_for

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUNNING = 1
LIMIT_SECONDS = 300


def test_a_task_that_runs_after_its_thread_was_looked_at_is_seen_there(tmp_path: Path) -> None:
    """Neither it nor the one that ran before is lost; one that has ended is not shown without those that awaited it."""
    library = tmp_path / "tick_halves.so"
    sources = [*sorted((ROOT / "ext").rglob("*.c")), HERE / "tick_halves.c"]
    flags = ["-std=c11", "-O0", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-D_GNU_SOURCE"]
    includes = ["-DPy_LIMITED_API=0x030b0000", f"-I{ROOT / 'ext'}", f"-I{headers_for(sys.executable)}"]
    command = ["gcc", *flags, *includes, *map(str, sources), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True, timeout=LIMIT_SECONDS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    program = [sys.executable, str(HERE / "tick_halves_program.py"), str(library)]
    done = subprocess.run(
        program,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "first": [RUNNING, ["<module>", "main", "first"]],
        "second": [RUNNING, ["<module>", "main", "second", "inner"]],
        "last": [0, None],
        "moved": 0,
    }
