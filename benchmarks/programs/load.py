"""Load on the web service: connections that ask again as soon as they are answered, until told that it is enough."""

import asyncio
import random
import sys
import time
from array import array

CONNECTIONS = 8


async def ask(port: int, kinds: int, seed: int, times: "array[float]") -> None:
    """Requests over one connection; of each the end and the latency, in seconds of the monotonic clock."""
    choose = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        begun = time.monotonic()
        writer.write(f"GET /{choose.randrange(kinds)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
        ended = time.monotonic()
        times.extend((ended, ended - begun))


async def load(port: int, kinds: int) -> "array[float]":
    times = array("d")
    asking = [asyncio.create_task(ask(port, kinds, seed, times)) for seed in range(CONNECTIONS)]
    enough = asyncio.create_task(asyncio.to_thread(sys.stdin.buffer.read, 1))
    await asyncio.wait([*asking, enough], return_when=asyncio.FIRST_COMPLETED)
    if not enough.done():
        raise RuntimeError("a connection ended")
    for task in asking:
        task.cancel()
    return times


if __name__ == "__main__":
    sys.stdout.buffer.write(asyncio.run(load(int(sys.argv[1]), int(sys.argv[2]))).tobytes())
