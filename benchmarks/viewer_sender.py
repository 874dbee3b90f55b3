"""Whether a viewer that receives slows the sender down: `python benchmarks/viewer_sender.py [--seconds 20]`.

A process works on one thread and on another exports so many samples each second, with the package's own exporter: to a
receiver that throws away what it gets, and to a viewer that stores it, each in a process of its own, in turn. On two
processors the three share them, so the CPU time of the sender says more than the clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median

from viewer import Viewer, many_samples

from otel_asyncprof.export import ProfileExportResult
from otel_asyncprof.export.otlp_http import OTLPProfileExporter

Measures = tuple[float, float, float, float]  # work a second, ms a call by the clock and of CPU, calls that failed


class Discarding(BaseHTTPRequestHandler):
    """Reads a request and says that all is well."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Any path."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def discard() -> None:
    """Serves until its stdin ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Discarding)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


def send(receiver: str, messages: list[bytes]) -> Measures:
    """One message each second, while the main thread works."""
    exporter = OTLPProfileExporter(f"{receiver}/v1development/profiles")
    calls: list[tuple[float, float, bool]] = []

    def export() -> None:
        begun = time.perf_counter()
        for number, message in enumerate(messages):
            time.sleep(max(begun + number - time.perf_counter(), 0))
            wall, cpu = time.perf_counter(), time.thread_time()
            result = exporter.export([message])
            calls.append((time.perf_counter() - wall, time.thread_time() - cpu, result is ProfileExportResult.SUCCESS))

    thread = threading.Thread(target=export)
    begun, turns = time.perf_counter(), 0
    thread.start()
    while thread.is_alive():
        sum(range(1000))
        turns += 1
    rate = turns / (time.perf_counter() - begun)
    exporter.shutdown()
    wall, cpu = (1000 * median(call[part] for call in calls) for part in (0, 1))
    return rate, wall, cpu, sum(not call[2] for call in calls)


def to_nobody(messages: list[bytes]) -> Measures:
    """To a receiver that throws away."""
    command = [sys.executable, __file__, "--discard"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdin is not None
        found = send(receiver.stdout.readline().strip(), messages)
        receiver.stdin.close()
    return found


def to_viewer(messages: list[bytes], samples: int) -> Measures:
    """To a viewer with an empty database; all has to be stored in the end."""
    with tempfile.TemporaryDirectory() as folder:
        viewer = Viewer(os.path.join(folder, "viewer.db"), "4GB")
        try:
            found = send(viewer.receiver, messages)
            if not found[3]:
                viewer.settled(samples)
        finally:
            viewer.stop()
    return found


def main() -> None:
    """Each receiver in turn, then medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=20_000, help="each second")
    parser.add_argument("--discard", action="store_true", help="be the receiver that throws away")
    chosen = parser.parse_args()
    if chosen.discard:
        discard()
        return
    begin_ns = time.time_ns() - 3600 * 10**9
    messages = [many_samples(begin_ns, 0, chosen.samples, 5, 2000, seed) for seed in range(chosen.seconds)]
    stored = chosen.samples * chosen.seconds
    size = sum(map(len, messages)) / len(messages) / 1024
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print(f"{chosen.samples:,} samples ({size:,.0f} KiB) a second for {chosen.seconds} s, medians of {chosen.rounds}:")
    rounds = [(to_nobody(messages), to_viewer(messages, stored)) for _ in range(chosen.rounds)]
    for number, name in enumerate(("thrown away", "the viewer")):
        rate, wall, cpu, _ = (median(each[number][part] for each in rounds) for part in range(4))
        failed = sum(each[number][3] for each in rounds)
        calls = f"{wall:6.1f} ms and {cpu:5.1f} ms CPU a call, {failed:.0f} failed"
        print(f"{name:12} {rate:9,.0f} turns of work a second, {calls}", flush=True)


if __name__ == "__main__":
    main()
