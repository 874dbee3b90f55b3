"""The checks of `otel-asyncprof doctor`. Each looks at one thing and never raises."""

import asyncio
import faulthandler
import importlib
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version

from .. import _platform
from .._config import ProfilerConfig
from ..errors import AsyncProfError
from .connection import reach

INTERPRETER = "interpreter"
_REINSTALL = f"{sys.executable} -m pip install --force-reinstall otel-asyncprof"
_REPORT = "install the newest otel-asyncprof; if that does not help, report this line"
_PACKAGES = ("opentelemetry-api", "opentelemetry-sdk", "opentelemetry-exporter-otlp", "opentelemetry-proto")
_OPTIONAL = ("opentelemetry-instrumentation", "opentelemetry-distro")
_LEAST_VERSION = (1, 45)


@dataclass(frozen=True)
class Result:
    """What one check has found."""

    name: str
    outcome: str  # ok, note or problem
    detail: str
    next_step: str = ""

    @property
    def is_problem(self) -> bool:
        """Whether something has to be done."""
        return self.outcome == "problem"

    def to_json(self) -> dict[str, str]:
        """As `doctor --json` prints it."""
        return {"name": self.name, "outcome": self.outcome, "detail": self.detail, "next": self.next_step}


def run_all() -> list[Result]:
    """All results; where the interpreter or the extension does not do, what needs them is left out."""
    first = _interpreter()
    if first.is_problem:
        return [first, *_guarded("packages", _packages)]
    extension = _extension()
    results = [first, extension]
    if not extension.is_problem:
        results += _guarded("self-check", _features)
    for name, check in (("signals", _signals), ("event loops", _event_loops), ("packages", _packages)):
        results += _guarded(name, check)
    if not extension.is_problem:
        results += _guarded("test sample", _test_sample)
    return [*results, *_guarded("receiver", _receiver)]


def _guarded(name: str, check: Callable[[], Iterator[Result]]) -> list[Result]:
    try:
        return list(check())
    except Exception as error:
        return [Result(name, "problem", f"the check itself failed: {type(error).__name__}: {error}", _REPORT)]


def _interpreter() -> Result:
    found = f"{platform.python_implementation()} {platform.python_version()}, {sys.platform} {platform.machine()}"
    if reason := _platform.unsupported_reason():
        known = ", ".join(f"{major}.{minor}" for major, minor in _platform.SUPPORTED_VERSIONS)
        return Result(INTERPRETER, "problem", f"{found}: {reason}", f"use CPython {known} on 64-bit Linux")
    return Result(INTERPRETER, "ok", f"{found} ({sys.executable})")


def _extension() -> Result:
    try:
        importlib.import_module("otel_asyncprof._native")
    except ImportError as error:
        return Result("extension", "problem", f"it cannot be loaded: {error}", _REINSTALL)
    return Result("extension", "ok", "otel_asyncprof._native is loaded")


def _features() -> Iterator[Result]:
    from .. import _anchors, _copy_method, _self_check

    try:
        anchors = _anchors.collect()
        with _copy_method.readable_memory():
            found = _self_check.run(anchors)
    except AsyncProfError as error:
        yield Result("self-check", "problem", str(error), _REPORT)
        return
    for feature, reason in found.items():
        if reason:
            yield Result(feature, "problem", f"what is read is not what Python says: {reason}", _REPORT)
        else:
            yield Result(feature, "ok", "what is read is what Python says")


def _signals() -> Iterator[Result]:
    owners = [f"{number.name} {_owner(number)}" for number in (signal.SIGSEGV, signal.SIGBUS)]
    ends = [f"{number.name} {_owner(number)}" for number in (signal.SIGTERM, signal.SIGHUP)]
    yield Result("signals", "ok", ", ".join([*owners, *ends]))


def _owner(number: signal.Signals) -> str:
    handler = signal.getsignal(number)
    if handler is None or (number in (signal.SIGSEGV, signal.SIGBUS) and faulthandler.is_enabled()):
        return "is faulthandler's" if faulthandler.is_enabled() else "belongs to another component"
    if handler in (signal.SIG_DFL, signal.SIG_IGN):
        return "is free" if handler == signal.SIG_DFL else "is ignored"
    return "has a Python handler"


def _event_loops() -> Iterator[Result]:
    loop = asyncio.new_event_loop()
    kind = f"{type(loop).__module__}.{type(loop).__qualname__}"
    loop.close()
    found = [kind]
    try:
        found.append(f"uvloop {version('uvloop')}")
    except PackageNotFoundError:
        found.append("no uvloop")
    found.append("eager tasks" if hasattr(asyncio, "eager_task_factory") else "no eager tasks in this version")
    yield Result("event loops", "ok", ", ".join(found))


def _packages() -> Iterator[Result]:
    found = {name: _version(name) for name in (*_PACKAGES, *_OPTIONAL)}
    missing = [name for name in _PACKAGES if not found[name]]
    old = [name for name in _PACKAGES[:2] if found[name] and _parts(found[name]) < _LEAST_VERSION]
    shown = ", ".join(f"{name.removeprefix('opentelemetry-')} {number}" for name, number in found.items() if number)
    if missing or old:
        wrong = ", ".join([*(f"no {name}" for name in missing), *(f"{name} {found[name]} is too old" for name in old)])
        yield Result("OpenTelemetry", "problem", f"{wrong} ({shown})", "pip install -U 'otel-asyncprof'")
    else:
        yield Result("OpenTelemetry", "ok", shown)
    yield _entry_point(bool(found["opentelemetry-instrumentation"]))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _parts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())


def _entry_point(can_instrument: bool) -> Result:
    name = "entry point"
    if not list(entry_points(group="opentelemetry_instrumentor", name="asyncprof")):
        return Result(name, "problem", "opentelemetry-instrument does not find asyncprof", _REINSTALL)
    if not can_instrument:
        step = "pip install 'otel-asyncprof[instrument]'"
        return Result(name, "note", "registered; opentelemetry-instrument itself is not installed", step)
    disabled = os.environ.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "")
    if {"asyncprof", "*"} & {part.strip() for part in disabled.split(",")}:
        step = "take asyncprof out of OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"
        return Result(name, "problem", f"switched off by OTEL_PYTHON_DISABLED_INSTRUMENTATIONS={disabled}", step)
    return Result(name, "ok", "opentelemetry-instrument finds asyncprof")


def _test_sample() -> Iterator[Result]:
    from opentelemetry.sdk.trace import TracerProvider

    from ..testing import capture

    provider = TracerProvider(shutdown_on_exit=False)
    with capture(rate=200, tracer_provider=provider) as profile:
        span_id = asyncio.run(_request(provider))
    copied = profile.stats.copy_method
    linked = [sample for sample in profile.samples if sample.span_id == span_id]
    stacks = {
        tuple(name for name in sample.functions if name in (_request.__name__, _query.__name__)) for sample in linked
    }
    if (_request.__name__, _query.__name__) in stacks:
        yield Result("test sample", "ok", "a query's sample names its span, below the request's coroutine")
    elif linked:
        yield Result("test sample", "problem", f"stacks are not put together: {sorted(stacks)}", _REPORT)
    else:
        step = "see the checks above; is the machine overloaded? then try again"
        yield Result("test sample", "problem", f"none of {len(profile.samples)} samples names the span", step)
    if copied == "guarded":
        yield Result("memory", "ok", "read with a guarded copy")
    else:
        step = "find out what in this process takes SIGSEGV or SIGBUS, and start it after the profiler"
        yield Result("memory", "problem", f"another component keeps SIGSEGV or SIGBUS: reads by {copied}", step)


async def _request(provider: object) -> int:
    return await asyncio.create_task(_query(provider))


async def _query(provider: object) -> int:
    from opentelemetry.sdk.trace import TracerProvider

    assert isinstance(provider, TracerProvider)
    with provider.get_tracer(__name__).start_as_current_span("doctor") as span:
        await asyncio.sleep(0.5)
        return span.get_span_context().span_id


def _receiver() -> Iterator[Result]:
    config = ProfilerConfig.from_env()
    yield reach(config.exporter, config)
