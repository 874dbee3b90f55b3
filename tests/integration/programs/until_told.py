"""A service that works until its input ends, and then exits with status 3."""

import asyncio
import sys
import time


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def work() -> None:
    while True:
        burn(0.01)
        await asyncio.sleep(0.02)


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    worker = loop.create_task(work())
    await asyncio.sleep(0.2)
    await reader.read()
    worker.cancel()


asyncio.run(main())
print("done", flush=True)
sys.exit(3)
