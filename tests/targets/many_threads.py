"""Forty threads that start, work a little and end."""

import threading

from targets.support import burn, phase


def work() -> None:
    burn(0.02)


async def main() -> None:
    with phase():
        for number in range(40):
            thread = threading.Thread(target=work, name=f"short {number}")
            thread.start()
            if number % 2:
                thread.join()
