"""One round of the demo after the other: load, wait, report."""

import json
import sys

from otel_asyncprof.demo.load import drive
from otel_asyncprof.demo.receiver import Receiver
from otel_asyncprof.demo.report import Report, make_report, to_json, to_text
from otel_asyncprof.demo.service import SHOP, Service, ServiceError, wait_for_export
from otel_asyncprof.demo.telemetry import read_spans
from otel_asyncprof.formats.stack_sample import stack_samples

LOAD_SECONDS = 8.0


def run_demo(*, once: bool, as_json: bool) -> int:
    """Runs the demo, once or until it is interrupted; the exit status of the last round."""
    status = 1
    try:
        with Receiver() as receiver, Service(receiver.endpoint) as service:
            _say(f"A shop on {service.url} sends traces and profiles to {receiver.endpoint}.")
            if not once:
                _say("Send it requests of your own if you like; Ctrl-C ends.")
            while True:
                _say(f"Sending requests for {LOAD_SECONDS:.0f} seconds …")
                answered = drive(service.url, LOAD_SECONDS)
                if once:
                    service.stop()
                else:
                    wait_for_export()
                report = make_report(read_spans(receiver.traces), stack_samples(receiver.profiles), str(SHOP))
                print(json.dumps(to_json(report)) if as_json else to_text(report), flush=True)
                status = _judge(report, answered, service.log())
                if once:
                    break
    except ServiceError as error:
        _say(f"otel-asyncprof demo: {error}")
        return 1
    except KeyboardInterrupt:
        _say("Stopped.")
    return status


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
