"""Every example runs and shows what it promises."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ONLY_PROFILES = {
    "OTEL_PROFILES_EXPORTER": "console",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}


def run(*command: str, **variables: str) -> str:
    """What a command prints; it must end well, and run for less than a minute."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | variables
    done = subprocess.run(
        command, cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.replace(" > TaskGroup._aexit", "")  # some releases have two functions at a group's end


def heaviest(output: str, function: str) -> list[str]:
    """The stacks of the console exporter that end in asyncio's sleep below a function, heaviest first."""
    stacks = [line.rpartition("  ")[2].partition(" (")[0] for line in output.splitlines() if line.startswith("  wall ")]
    return [stack for stack in stacks if stack.endswith(f" > {function} > sleep")]


def test_five_lines_print_the_children_on_their_parent() -> None:
    """Both children of the gather, as one stack from the module to the sleep."""
    output = run(sys.executable, "five_lines.py")
    assert set(heaviest(output, "fetch")) == {"<module> > main > fetch > sleep"}


def test_the_application_without_profiling_code_is_profiled() -> None:
    """The entry point alone starts the profiler."""
    script = str(Path(sysconfig.get_path("scripts")) / "opentelemetry-instrument")
    output = run(script, sys.executable, "zero_code.py", **ONLY_PROFILES)
    assert set(heaviest(output, "worker")) == {"<module> > main > TaskGroup.__aexit__ > worker > sleep"}


def test_slow_spans_finds_the_code_of_each_span() -> None:
    """Two spans of the same name, told apart by the code that opened them."""
    assert run(sys.executable, "slow_spans.py").splitlines() == [
        "<module> > request > TaskGroup.__aexit__ > report > query > sleep",
        "<module> > request > TaskGroup.__aexit__ > query > sleep",
    ]


def test_the_example_tests_pass() -> None:
    """The example is itself a pytest file."""
    output = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "in_a_test.py")
    assert re.search(r"^2 passed", output, flags=re.MULTILINE), output


def test_every_example_has_its_test_here() -> None:
    """A new example needs a test that names it."""
    named = set(re.findall(r'"(\w+\.py)"', Path(__file__).read_text()))
    assert {path.name for path in EXAMPLES.glob("*.py")} == named
