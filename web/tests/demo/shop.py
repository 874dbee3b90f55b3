"""The viewer and the demo's shop under load, sending to it; the page's address on stdout, until stdin ends."""

import re
import subprocess
import sys
import threading

from otel_asyncprof.demo.load import drive
from otel_asyncprof.demo.service import Service

LOAD_SECONDS = 6.0
PORTS = ("--ui-port", "0", "--http-port", "0", "--grpc-port", "0")

viewer = subprocess.Popen(
    [sys.executable, "-m", "otel_asyncprof", "serve", "--no-browser", "--db", ":memory:", *PORTS],
    stderr=subprocess.PIPE,
    text=True,
)
assert viewer.stderr is not None
said = ""
while not (found := re.search(r"page +(http://\S+)(?s:.*)http (http://\S+)", said)):
    line = viewer.stderr.readline()
    if not line:
        sys.exit(f"the viewer did not start: {said}")
    said += line
threading.Thread(target=viewer.stderr.read, daemon=True).start()
try:
    with Service(found[2], timeline=True) as shop:
        drive(shop.url, LOAD_SECONDS)
    print(found[1], flush=True)  # the shop has ended and has sent all it had
    sys.stdin.read()
finally:
    viewer.terminate()
    viewer.wait()
