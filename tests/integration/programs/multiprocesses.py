"""Has processes of multiprocessing work, in each of its ways, begun by the method that its argument names."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import sys


async def in_a_worker() -> None:
    await asyncio.sleep(0.3)


def work(_: int = 0) -> int:
    asyncio.run(in_a_worker())
    return os.getpid()


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    process = context.Process(target=work)
    process.start()
    process.join()
    print(process.pid, process.exitcode)
    pool = context.Pool(1)
    print(pool.apply(work), 0)
    pool.close()
    pool.join()
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        print(executor.submit(work).result(), 0)
