"""A web service on asyncio under load from another process: each request gathers a query and some work of its own."""

import asyncio
import json
import sys
from array import array
from typing import Any

from programs.meter import quantile
from programs.run import KINDS, Run, kinds, main, work

QUERY_SECONDS = 0.005


async def execute() -> list[int]:
    await asyncio.sleep(QUERY_SECONDS)
    return list(range(20))


async def query(run: Run, name: str) -> list[int]:
    with run.query_span() as span:
        run.note_span(span, name)
        return await execute()


async def compute() -> int:
    return work(4000)


async def handle(run: Run, kind: int) -> bytes:
    with run.request_span() as span:
        run.note_span(span, f"compute_{kind}")
        rows, total = await asyncio.gather(query_kinds[kind](run, f"query_{kind}"), compute_kinds[kind]())
        return json.dumps({"rows": rows, "total": total}).encode()


query_kinds: list[Any] = kinds(query)
compute_kinds: list[Any] = kinds(compute)
handle_kinds: list[Any] = kinds(handle)


async def program(run: Run) -> None:
    for kind in range(KINDS):
        run.note_leaf(f"query_{kind}", f"handle_{kind}", "execute")
        run.note_leaf(f"compute_{kind}", f"handle_{kind}")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.readuntil(b"\r\n\r\n"):
            kind = int(request.split(b" ", 2)[1][1:])
            body = await handle_kinds[kind](run, kind)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
            run.units += 1

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    command = (sys.executable, "-m", "programs.load", str(port), str(KINDS))
    pipe = asyncio.subprocess.PIPE
    load = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    await run.measure()
    output, _ = await load.communicate(b"enough")  # until then the load goes on
    times = array("d")
    times.frombytes(output)
    answered = [
        latency
        for ended, latency in zip(times[::2], times[1::2], strict=True)
        if run.window_begun <= ended < run.window_ended
    ]
    if not answered:
        raise RuntimeError("no request was answered")
    answered.sort()
    run.extra = {"request_p50_ms": 1e3 * quantile(answered, 0.5), "request_p99_ms": 1e3 * quantile(answered, 0.99)}


if __name__ == "__main__":
    main(program)
