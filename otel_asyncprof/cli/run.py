"""`otel-asyncprof run`: a program, profiled without a change."""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .messages import CANNOT_START, UNSUPPORTED, USAGE, Failure, duration_text, plain, say
from .output import Output
from .values import duration, rate

if TYPE_CHECKING:
    from ..analysis.findings import Findings
    from .spool import Spool

_USAGE = "%(prog)s [options] (script.py | -m module | -- program) [arguments]"
_EPILOG = "What follows the script, the module or the program belongs to it. Exit status: the program's own."
SHOWN_SPANS = 3
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "OTEL_PROFILES_EXPORTER")
_LEFT_OUT = {"none", ""}
_GRPC_PORT = ":4317"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.usage, parser.epilog = _USAGE, _EPILOG
    parser.add_argument(
        "-r", "--rate", type=rate, metavar="HZ", help="looks per second (default 100; 1khz is understood)"
    )
    parser.add_argument(
        "-d",
        "--duration",
        type=duration,
        default=0.0,
        metavar="TIME",
        help="stop profiling after 30, 10s or 5m; the program goes on",
    )
    Output.add_arguments(parser, "write the profile to FILE")
    parser.add_argument(
        "--async-mode", choices=("all", "running"), default="all", help="all tasks, or only what runs (default all)"
    )
    parser.add_argument("--subprocesses", action="store_true", help="also profile the Python processes that it starts")
    parser.add_argument("--endpoint", metavar="URL", help="also send profiles and traces to this OTLP endpoint")
    parser.add_argument(
        "--view", action="store_true", help="show profiles and traces on a page of their own, until Ctrl-C"
    )
    parser.add_argument(
        "--protocol",
        choices=("grpc", "http/protobuf"),
        help="of the endpoint (default: grpc for port 4317, else http/protobuf)",
    )
    parser.add_argument("--service-name", metavar="NAME", help="service.name (default: the program's name)")
    parser.add_argument(
        "--instrument",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="load OpenTelemetry's instrumentations (default: when opentelemetry-instrumentation is installed)",
    )
    parser.add_argument("--print-env", action="store_true", help="print the settings in effect, and run nothing")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    parser.set_defaults(run=run, program=[], kind="")


def split_arguments(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Our own arguments, what follows them ("script", "module", "program" or ""), and what is to be run."""
    takes_value = {option for action in parser._actions if action.nargs != 0 for option in action.option_strings}
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if argument == "--":
            return list(arguments[:position]), "program", list(arguments[position + 1 :])
        if argument.startswith("-m"):
            module = [argument[2:]] if len(argument) > 2 else []
            return list(arguments[:position]), "module", [*module, *arguments[position + 1 :]]
        if not argument.startswith("-") or argument == "-":
            return list(arguments[:position]), "script", list(arguments[position:])
        position += 2 if argument in takes_value else 1
    return list(arguments), "", []


@dataclass(frozen=True)
class _Program:
    """What is to be run, and the name by which people know it."""

    command: list[str]
    name: str


def _program(kind: str, rest: list[str]) -> _Program:
    if not rest:
        raise Failure("run: what is to be run? (script.py | -m module | -- program) [arguments]", USAGE)
    first, following = rest[0], rest[1:]
    if kind == "module":
        return _Program([sys.executable, "-m", first, *following], first)
    if kind == "script":
        path = Path(first)
        if not path.exists():
            in_path = f"; for a command: otel-asyncprof run -- {' '.join(rest)}" if shutil.which(first) else ""
            raise Failure(f"{first} does not exist{in_path}", CANNOT_START)
        return _Program([sys.executable, first, *following], path.stem)
    found = shutil.which(first)
    if found is None:
        raise Failure(f"{first} is not a program that can be run, neither here nor on PATH", CANNOT_START)
    name = Path(first).name
    if name == "opentelemetry-instrument":
        raise Failure("opentelemetry-instrument is not needed here: --instrument does what it does", USAGE)
    return _Program([first, *following], name)


def run(chosen: argparse.Namespace) -> int:
    """Runs the program and says at the end what was seen; the program's exit status."""
    environment = _environment(chosen)
    if chosen.print_env:
        return _print_env(environment, running_only=chosen.async_mode == "running")
    program = _program(chosen.kind, chosen.program)
    _refuse_where_nothing_works(chosen.kind)
    from .child import end_like

    if not chosen.view:
        return end_like(_run_and_close(chosen, program, environment))
    if chosen.endpoint:
        raise Failure("--view and --endpoint exclude each other: data are sent to one of them", USAGE)
    from .view import ViewerBeside

    with ViewerBeside(quiet=chosen.quiet) as viewer:
        status = _run_and_close(chosen, program, viewer.environment(environment))
        viewer.stay()
    return end_like(status)


def _run_and_close(chosen: argparse.Namespace, program: _Program, environment: dict[str, str]) -> int:
    """The program's exit status; less than 0: minus the signal that has ended it."""
    environment.setdefault("OTEL_SERVICE_NAME", program.name)
    if "service.name=" in environment.get("OTEL_RESOURCE_ATTRIBUTES", "") and not chosen.service_name:
        environment.pop("OTEL_SERVICE_NAME")
    sends = _sends(environment)
    if chosen.output == "-":
        raise Failure("stdout belongs to the program: say -o FILE", USAGE)
    output = Output.of(chosen, None if sends else f"asyncprof-{program.name}-{os.getpid()}")
    output.check()
    folder = tempfile.mkdtemp(prefix="otel-asyncprof-")
    try:
        return _run(chosen, program, environment, output, folder, sends)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(
    chosen: argparse.Namespace, program: _Program, environment: dict[str, str], output: Output, folder: str, sends: bool
) -> int:
    from .child import run_program
    from .settings import RunSettings
    from .spool import Spool

    settings = RunSettings(
        folder=folder,
        subprocesses=chosen.subprocesses,
        instrument=_instruments() if chosen.instrument is None else chosen.instrument,
        otlp=sends,
        running_only=chosen.async_mode == "running",
        duration=chosen.duration,
        python_path=os.environ.get("PYTHONPATH"),
    )
    try:
        status = run_program(program.command, environment | settings.environment())
    except OSError as error:
        raise Failure(f"{program.command[0]} cannot be started: {error.strerror}", CANNOT_START) from None
    try:
        _close(Spool(folder), output, chosen.quiet)
    except KeyboardInterrupt:
        pass
    except Exception as error:  # the program has had its run, and its exit status stands
        say(f"the recording cannot be evaluated: {type(error).__name__}: {error}")
    return status


def _sends(environment: dict[str, str]) -> bool:
    return any(environment.get(name, "").lower() not in _LEFT_OUT for name in _ENDPOINTS)


def _instruments() -> bool:
    return find_spec("opentelemetry.instrumentation") is not None


def _refuse_where_nothing_works(kind: str) -> None:
    from .._platform import unsupported_reason

    reason = unsupported_reason()
    if kind != "program" and reason is not None:
        raise Failure(f"this interpreter cannot be profiled: {reason}", UNSUPPORTED)


def _environment(chosen: argparse.Namespace) -> dict[str, str]:
    """This environment with what the options say."""
    given = {
        "OTEL_ASYNCPROF_RATE": chosen.rate and str(chosen.rate),
        "OTEL_EXPORTER_OTLP_ENDPOINT": chosen.endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": chosen.protocol or (chosen.endpoint and _protocol_of(chosen.endpoint)),
        "OTEL_SERVICE_NAME": chosen.service_name,
    }
    return dict(os.environ) | {name: value for name, value in given.items() if value}


def _protocol_of(endpoint: str) -> str:
    """What the environment says, else by the port: a distro, if there is one, would take gRPC for any."""
    if given := os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL"):
        return given
    return "grpc" if endpoint.rstrip("/").endswith(_GRPC_PORT) else "http/protobuf"


def _print_env(environment: dict[str, str], *, running_only: bool) -> int:
    """Prints what the profiler would be told: each variable with the value in effect."""
    from .._config import OPTIONS
    from .messages import write_lines
    from .settings import configuration

    config = configuration(environment, running_only=running_only, otlp=_sends(environment))
    shown = {
        option.variable: _text(getattr(config, name)) for name, option in OPTIONS.items() if not option.read_by_exporter
    }
    shown |= {
        name: _shown(name, value)
        for name, value in environment.items()
        if name.startswith("OTEL_") and name not in shown
    }
    write_lines(f"{name}={value}" for name, value in sorted(shown.items()))
    return 0


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(name: str, value: str) -> str:
    """A value without what is nobody's business who reads over a shoulder."""
    from ..export._otlp_settings import without_secrets

    if name.endswith("HEADERS"):
        return "(not shown)"
    return without_secrets(value) if name.endswith("ENDPOINT") else value


def _close(spool: "Spool", output: Output, is_quiet: bool) -> None:
    """Writes the file and says what was seen; whatever goes wrong here, the program has had its run."""
    from ..analysis.findings import Findings

    recording = spool.read()
    for pid, reason in spool.notes():
        say(f"process {pid} was not profiled: {reason}")
    if not recording.profiles and not recording.traces:
        if spool.has_begun:
            say("nothing was recorded: the program ended, or was killed, too soon")
        elif not spool.notes():
            say("no process was profiled: the program is not Python, ignores PYTHONPATH, or was killed at once")
        return
    try:
        written = output.write(recording)
    except OSError as error:
        kept = Path(tempfile.mkdtemp(prefix="otel-asyncprof-")) / "recording.jsonl"
        Output(kept, "otlp-json", "wall").write(recording)
        say(f"{output.path} cannot be written: {error.strerror}; the recording is kept in {kept}")
        return
    if not is_quiet:
        say(*summary(Findings.of(recording), output.path if written else None, output.holds_recording))


def summary(findings: "Findings", path: Path | None, can_be_read: bool) -> list[str]:
    """What was seen, in a few lines, and what can be asked next."""
    from ..analysis.split import text_of

    n_samples, n_spans = findings.n_observations, len(findings.spans.by_id)
    share = f", {findings.n_linked / n_samples:.0%} linked to one of {n_spans:,} spans" if n_spans and n_samples else ""
    cpu = duration_text(sum(sample.cpu_ns for sample in findings.samples))
    lasted = duration_text(findings.end_ns - findings.start_ns)
    parts = [f"{n_samples:,} samples of {lasted}{share}", f"CPU {cpu}", text_of(findings.split())]
    lines = ["; ".join(filter(None, parts))]
    for slow in findings.requests()[:SHOWN_SPANS]:
        split = f" ({text_of(slow.split)})" if slow.split else ""
        lines.append(f"slowest  {duration_text(slow.span.duration_ns)}  {plain(slow.span.name)}{split}")
    for query in sorted(findings.queries(), key=lambda query: -query.durations_ns[-1])[:SHOWN_SPANS]:
        slowest = query.slowest
        by = f"  by {slowest.caller}" if slowest.caller else ""
        lines.append(f"query    {duration_text(slowest.span.duration_ns)}  {plain(_cut(query.statement))}{plain(by)}")
    if path is not None:
        lines.append(f"written  {path}")
        if can_be_read:
            name = shlex.quote(str(path))
            lines.append(f"next     otel-asyncprof report {name}")
            if n_spans:
                lines.append(f"         otel-asyncprof queries --slowest {name}")
            lines.append(f"         otel-asyncprof report -o report.html {name}")
    return lines


def _cut(text: str, most: int = 70) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
