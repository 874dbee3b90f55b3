"""Has a new interpreter work for it."""

import asyncio
import multiprocessing
import os
import sys


async def in_the_new_process() -> None:
    await asyncio.sleep(0.3)


def work(answers: "multiprocessing.Queue[int]") -> None:
    asyncio.run(in_the_new_process())
    answers.put(os.getpid())
    sys.exit(5)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=work, args=(answers,))
    process.start()
    print(answers.get(timeout=30), process.pid)
    process.join()
    print(process.exitcode)
