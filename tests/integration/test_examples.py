"""Every example runs and shows what it promises."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path

from integration.collectors import closed_port

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
INSTRUMENT = str(Path(sysconfig.get_path("scripts")) / "opentelemetry-instrument")
ONLY_PROFILES = {
    "OTEL_PROFILES_EXPORTER": "console",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}


def environment_with(**variables: str) -> dict[str, str]:
    """This environment with no other OTEL_ variables than these."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | variables


def run(*command: str, **variables: str) -> str:
    """What a command prints; it must end well, and run for less than a minute."""
    done = subprocess.run(
        command,
        cwd=EXAMPLES,
        env=environment_with(**variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
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
    output = run(INSTRUMENT, sys.executable, "zero_code.py", **ONLY_PROFILES)
    assert heaviest(output, "worker")[0] == "<module> > main > TaskGroup.__aexit__ > worker > sleep"


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


def test_the_service_shows_the_slow_query_below_its_page() -> None:
    """Under uvicorn, with no code about profiling."""
    port = str(closed_port())
    command = [INSTRUMENT, sys.executable, "-m", "uvicorn", "service:app", "--port", port, "--log-level", "warning"]
    service = subprocess.Popen(
        command, cwd=EXAMPLES, env=environment_with(**ONLY_PROFILES), stdout=subprocess.PIPE, text=True
    )
    try:
        assert asked(f"http://127.0.0.1:{port}/") == b"done\n"
        service.send_signal(signal.SIGINT)
        output, _ = service.communicate(timeout=60)
    finally:
        service.kill()
    assert heaviest(output, "query")[0].endswith(" > page > reviews > query > sleep")


def asked(url: str) -> bytes:
    """What a service answers that is about to start."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.URLError:
            assert time.monotonic() < deadline, "the service does not start"
            time.sleep(0.05)


def test_every_example_has_its_test_here() -> None:
    """A new example needs a test that names it."""
    named = set(re.findall(r'"(\w+\.py)"', Path(__file__).read_text())) | {"service.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == named
