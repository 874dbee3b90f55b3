"""What cannot work costs one line that says why and what to do: the application runs on as if nothing had happened."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conformance import check_request
from integration.applications import Ended, environment, plugin, run, run_all
from integration.collectors import HttpCollector

import otel_asyncprof
from otel_asyncprof.formats.stack_sample import stack_samples

THIS = r"\d+\.\d+\.\d+"


@dataclass(frozen=True)
class Refusal:
    """What is planted in the process before the profiler is loaded, and the line that it has to cost."""

    code: str
    line: str


REFUSALS = {
    "another version": Refusal(
        """
        import sys, types
        fields = {"major": 3, "minor": 99, "micro": 0, "releaselevel": "final", "serial": 0}
        class VersionInfo(tuple):
            pass
        version = VersionInfo(fields.values())
        version.__dict__.update(fields)
        sys.version_info, sys.version = version, "3.99.0 (main, Jan  1 2030, 00:00:00) [GCC 20.1.0]"
        """,
        r"CPython 3\.99\.0 is not supported; use one that is \(3\.11, 3\.12, 3\.13, 3\.14, 3\.15\)",
    ),
    "another platform": Refusal(
        "import sys; sys.platform = 'darwin'",
        r"it works on 64-bit Linux only, this is darwin \w+; OTEL_ASYNCPROF_ENABLED=false switches it off",
    ),
    "another implementation": Refusal(
        "import platform; platform.python_implementation = lambda: 'PyPy'",
        r"it works on CPython only, this is PyPy; OTEL_ASYNCPROF_ENABLED=false switches it off",
    ),
    "the free-threaded build": Refusal(
        "import sys; sys.abiflags = 't'",
        r"the free-threaded build of CPython is not supported; use the default build",
    ),
    "an extension that was not built": Refusal(
        "import sys; sys.modules['otel_asyncprof._native'] = None",
        r"its extension cannot be loaded \(.*_native.*\); "
        r"install otel-asyncprof anew, with the pip of this interpreter",
    ),
    "threads that read wrong": Refusal(
        "import otel_asyncprof._native as native; native.read_thread = lambda: []",
        rf"the memory of CPython {THIS} is not laid out as expected: the depth of this thread's stack reads 0, "
        r"Python says \d+; a newer otel-asyncprof may know it, else please report this line",
    ),
    "a reader that fails": Refusal(
        "import otel_asyncprof._native as native; native.read_thread = None",
        rf"the memory of CPython {THIS} is not laid out as expected: the check itself failed: TypeError: .*; "
        r"a newer otel-asyncprof may know it, else please report this line",
    ),
}


@pytest.fixture(scope="module")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes empty folders."""
    return lambda: tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def refused(make_folder: Callable[[], Path]) -> dict[str, tuple[Ended, int]]:
    """How the program ended with each of these planted, and how many requests it sent."""
    with HttpCollector() as collector:
        jobs = []
        for refusal in REFUSALS.values():
            path = plugin(make_folder(), refusal.code)
            variables = environment(collector, PYTHONPATH=path, OTEL_TRACES_EXPORTER="none")
            jobs.append(functools.partial(run, "until_told.py", env=variables, launch="injected"))
        ends = run_all(*jobs)
    return {name: (ended, len(collector.arrivals)) for name, ended in zip(REFUSALS, ends, strict=True)}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_profiled_costs_one_line(refused: dict[str, tuple[Ended, int]], name: str) -> None:
    """With the reason and the next step; output and status are the application's own, and nothing is sent."""
    ended, arrivals = refused[name]
    assert_one_line(ended, REFUSALS[name].line)
    assert arrivals == 0


def assert_one_line(ended: Ended, reason: str) -> None:
    """The program ran as it does alone, with one line on its standard error."""
    assert (ended.status, ended.stdout) == (3, "done\n"), ended.stderr
    assert len(ended.lines) == 1, ended.stderr
    assert re.fullmatch(f"otel_asyncprof does not profile this process: {reason}", ended.lines[0]), ended.stderr


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02\x01\x01" + bytes(57)], ids=["empty", "no library"])
def test_an_extension_that_cannot_be_loaded_costs_one_line(content: bytes, tmp_path: Path) -> None:
    """The file is there and is none."""
    package = tmp_path / "otel_asyncprof"
    shutil.copytree(Path(otel_asyncprof.__file__).parent, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (package / "_native.abi3.so").write_bytes(content)
    ended = run("until_told.py", env=environment(PYTHONPATH=str(tmp_path)))
    reason = rf"its extension cannot be loaded \({re.escape(str(package))}/_native\.abi3\.so: .+\); install .+"
    assert_one_line(ended, reason)


def test_without_readable_spans_the_rest_is_profiled(tmp_path: Path) -> None:
    """One line names what is missing; no sample has a link."""
    path = plugin(tmp_path, "import otel_asyncprof._native as native; native.read_link = lambda address: None")
    with HttpCollector() as collector:
        ended = run("spans.py", "exit", env=environment(collector, PYTHONPATH=path))
    assert (ended.status, len(ended.lines)) == (3, 1), ended.stderr
    assert re.fullmatch(
        rf"otel_asyncprof on CPython {THIS} goes on with less: no spans: a context's span reads None, Python says .+; "
        "a newer otel-asyncprof may know it, else please report this line",
        ended.lines[0],
    )
    (request,) = collector.profiles
    check_request(request)
    samples = stack_samples([request.SerializeToString()])
    assert ("<module>", "main", "handle", "query", "sleep") in {sample.functions for sample in samples}
    assert {(sample.trace_id, sample.span_id) for sample in samples} == {(0, 0)}


PROFILES = "OTEL_EXPORTER_OTLP_PROFILES_"
# Variable -> a bad value, and how its line goes on. Left out are those of which any text may be a value.
BAD_VALUES = {
    "OTEL_ASYNCPROF_ENABLED": ("maybe", "true, false"),
    "OTEL_ASYNCPROF_RATE": ("0", "1 to 1000 per second"),
    "OTEL_ASYNCPROF_CPU_BUDGET": ("nan", "0.001 to 1, a share of one core"),
    "OTEL_ASYNCPROF_INTERVAL": ("10 minutes", "0.1 to 3600 seconds"),
    "OTEL_ASYNCPROF_MAX_FRAMES": ("12.5", "3 to 512"),
    "OTEL_ASYNCPROF_LINK": ("all", "span, local_root"),
    "OTEL_ASYNCPROF_LINK_UNSAMPLED": ("2", "true, false"),
    "OTEL_ASYNCPROF_LOOP_FRAMES": ("sí", "true, false"),
    "OTEL_ASYNCPROF_SAMPLE_ATTRIBUTES": (
        "thread.name,colour",
        "a comma-separated list out of thread.name, asyncprof.state, thread.id, asyncio.task.name, "
        "asyncprof.local_root.name",
    ),
    "OTEL_ASYNCPROF_TIMELINE": ("-", "true, false"),
    "OTEL_ASYNCPROF_SLOW_SPAN_THRESHOLD": ("-1ms", "0 to 3600000 milliseconds"),
    "OTEL_ASYNCPROF_CALLER_KINDS": (
        "friend",
        "a comma-separated list out of client, internal, producer, consumer, server",
    ),
    "OTEL_ASYNCPROF_EXIT_SIGNALS": ("2", "true, false"),
    "OTEL_ASYNCPROF_PROFILE_ID": ("perhaps", "true, false"),
    "OTEL_ASYNCPROF_THREAD_CONTEXT": ("1e3", "true, false"),
    "OTEL_PROFILES_EXPORTER": (
        "zipkin",
        "otlp, otlp_proto_http, otlp_proto_grpc, console, file, none, or an installed entry point of "
        "opentelemetry_profiles_exporter",
    ),
    f"{PROFILES}PROTOCOL": ("http/json", "http/protobuf, grpc"),
    f"{PROFILES}ENDPOINT": ("ftp://127.0.0.1", "a URL with http:// or https://"),
    f"{PROFILES}TIMEOUT": ("soon", "0.001 to 3600 seconds"),
    f"{PROFILES}COMPRESSION": ("zip", "none, gzip, deflate"),
    f"{PROFILES}INSECURE": ("perhaps", "true, false"),
}
FILES = [f"{PROFILES}CERTIFICATE", f"{PROFILES}CLIENT_KEY", f"{PROFILES}CLIENT_CERTIFICATE"]


def test_every_bad_variable_costs_one_line() -> None:
    """It names the variable, the value and what is allowed; the application is profiled with the defaults."""
    bad = {name: value for name, (value, _) in BAD_VALUES.items()}
    ended = run("until_told.py", env=environment(**bad, **{f"{PROFILES}HEADERS": "sesame"}))
    assert (ended.status, ended.stdout) == (3, "done\n"), ended.stderr
    expected = [
        f"{name}={value!r} is not allowed (allowed: {allowed}); the default is used"
        for name, (value, allowed) in BAD_VALUES.items()
    ]
    expected.append(f"{PROFILES}HEADERS: pair 1 is not name=value and is left out")
    assert sorted(line for line in ended.lines if line.startswith("OTEL_")) == sorted(expected)
    # The default endpoint, where nobody listens.
    others = [line for line in ended.lines if not line.startswith("OTEL_")]
    assert len(others) == 1, others
    assert others[0].startswith("a profile could not be sent to http://localhost:4318/v1development/profiles")


def test_a_file_that_cannot_be_read_costs_one_line() -> None:
    """Nothing is sent without the credentials that were asked for."""
    common = {f"{PROFILES}ENDPOINT": "https://127.0.0.1:1"}
    exporters = ["otlp_proto_http", "otlp_proto_http", "otlp_proto_grpc"]
    jobs = []
    for name, exporter in zip(FILES, exporters, strict=True):
        variables = environment(**common, **{name: "/no/such/file", "OTEL_PROFILES_EXPORTER": exporter})
        jobs.append(functools.partial(run, "until_told.py", env=variables, launch="injected"))
    for ended in run_all(*jobs):
        assert_one_line(ended, "/no/such/file cannot be read.*")


def test_every_variable_of_ours_is_tried_with_a_bad_value() -> None:
    """A new one needs its line here."""
    from otel_asyncprof import environment_variables

    ours = {name for name in dir(environment_variables) if name.startswith("OTEL_")}
    any_text = {"OTEL_ASYNCPROF_FILE"}
    assert ours == {*BAD_VALUES, *FILES, f"{PROFILES}HEADERS", *any_text}


def test_a_file_that_cannot_be_written_loses_the_profile_only(tmp_path: Path) -> None:
    """The path names a folder."""
    variables = environment(OTEL_PROFILES_EXPORTER="file", OTEL_ASYNCPROF_FILE=str(tmp_path))
    ended = run("until_told.py", env=variables)
    assert (ended.status, ended.stdout) == (3, "done\n")
    reason = "cannot be written: Is a directory; OTEL_ASYNCPROF_FILE names the file"
    assert ended.lines == [f"a profile is lost: {tmp_path} {reason}"]
