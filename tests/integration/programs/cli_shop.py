"""Three requests with two queries each, and some work: what a user would run under the profiler."""

import asyncio
import json
import os
import sys

from opentelemetry import trace
from opentelemetry.trace import SpanKind

tracer = trace.get_tracer("shop")
QUERY = {"db.system.name": "postgresql", "db.query.text": "SELECT *\n  FROM lines WHERE order_id = $1"}


async def fetch_lines():
    with tracer.start_as_current_span("SELECT lines", kind=SpanKind.CLIENT, attributes=QUERY):
        await asyncio.sleep(0.2)


def render():
    return sum(number * number for number in range(400_000))


async def handle(number):
    with tracer.start_as_current_span(f"GET /orders/{number}", kind=SpanKind.SERVER):
        await asyncio.gather(fetch_lines(), fetch_lines())
        render()


async def main():
    await asyncio.gather(*(handle(number) for number in range(3)))


if __name__ == "__main__":
    asyncio.run(main())
    environment = sorted(name for name in os.environ if "ASYNCPROF" in name or name == "PYTHONPATH")
    line = sys.stdin.readline()
    print(json.dumps({"argv": sys.argv, "stdin": line, "environment": environment, "path": sys.path[:1]}))
    sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
