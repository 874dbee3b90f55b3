"""The demo: load, report, and then the page until it is ended."""

import contextlib
import json
import shlex
import sys

from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from otel_asyncprof.cli.output import Output
from otel_asyncprof.demo.load import drive
from otel_asyncprof.demo.page import CannotStart, Page
from otel_asyncprof.demo.receiver import Receiver
from otel_asyncprof.demo.report import Report, make_report, to_json, to_text
from otel_asyncprof.demo.service import SHOP, Service, ServiceError, wait_for_export
from otel_asyncprof.demo.telemetry import read_spans
from otel_asyncprof.formats.recording import Recording
from otel_asyncprof.formats.stack_sample import stack_samples

LOAD_SECONDS = 8.0


def run_demo(*, once: bool, as_json: bool, output: Output | None = None) -> int:
    """One round, and then the page until it is interrupted, or only the round; the round's exit status."""
    status = 1
    try:
        with contextlib.ExitStack() as running:
            page = None if once else running.enter_context(Page())
            receiver = running.enter_context(Receiver(page.take if page else None))
            service = running.enter_context(Service(receiver.endpoint, timeline=page is not None))
            _say(f"A shop on {service.url} sends traces and profiles to {receiver.endpoint}.")
            if page is not None:
                _say(f"They are on a page: {page.address}")
            _say(f"Sending requests for {LOAD_SECONDS:.0f} seconds …")
            answered = drive(service.url, LOAD_SECONDS)
            if once:
                service.stop()
            else:
                wait_for_export()
            report = make_report(read_spans(receiver.traces), stack_samples(receiver.profiles), str(SHOP))
            print(json.dumps(to_json(report)) if as_json else to_text(report), flush=True)
            if output is not None:
                _keep(receiver, output)
            status = _judge(report, answered, service.log())
            if page is not None:
                _say(f"Send {service.url}/dashboard/north requests of your own if you like; Ctrl-C ends.")
                _say(f"page   {page.address}")
                service.wait()
    except (ServiceError, CannotStart) as error:
        _say(f"otel-asyncprof demo: {error}")
        return 1
    except KeyboardInterrupt:
        _say("Stopped.")
    return status


def _keep(receiver: Receiver, output: Output) -> None:
    """Writes all that has arrived, for the other commands to read."""
    recording = Recording(
        [ProfilesData.FromString(request) for request in receiver.profiles],
        [TracesData.FromString(request) for request in receiver.traces],
    )
    try:
        output.write(recording)
    except OSError as error:
        _say(f"otel-asyncprof: {output.path} cannot be written: {error.strerror}")
        return
    name = shlex.quote(str(output.path))
    _say(f"otel-asyncprof: written  {name}")
    if output.holds_recording:
        for number, command in enumerate(("report", "queries --slowest", "report -o report.html")):
            _say(f"otel-asyncprof: {'next    ' if number == 0 else '        '} otel-asyncprof {command} {name}")


def _judge(report: Report, answered: int, log: list[str]) -> int:
    if any(query.led_back for query in report.queries):
        return 0
    for line in log:
        _say(f"  service: {line}")
    _say(
        f"otel-asyncprof demo: no query could be led back to its request: {answered} requests were answered, "
        f"{report.spans} spans and {report.samples} samples arrived, {len(report.queries)} slow queries among them"
    )
    return 1


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
