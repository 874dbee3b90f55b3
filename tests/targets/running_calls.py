"""CPU work in every kind of call: methods, lambdas, comprehensions, decorated functions, and Python called from C."""

import ctypes
import functools
import json
import re
from collections.abc import Callable
from typing import Any

from targets.support import burn, phase

SECONDS = 0.1


class Worker:
    @classmethod
    def of_class(cls) -> None:
        burn(SECONDS)

    @staticmethod
    def of_static() -> None:
        burn(SECONDS)

    def __del__(self) -> None:
        burn(SECONDS)


def decorated(function: Callable[[], None]) -> Callable[[], None]:
    @functools.wraps(function)
    def wrapper() -> None:
        function()

    return wrapper


@decorated
def plain() -> None:
    burn(SECONDS)


def answer(*_: Any) -> Any:
    burn(SECONDS)
    return ""


def calls() -> None:
    Worker.of_class()
    Worker.of_static()
    plain()
    (lambda: burn(SECONDS))()
    _ = {number: burn(SECONDS) for number in range(1)}
    sum(burn(SECONDS) or 0 for _ in range(1))
    sorted([1], key=answer)
    re.sub("a", answer, "a")
    functools.reduce(answer, [1, 2])
    json.dumps(object, default=answer)
    ctypes.CFUNCTYPE(None)(answer)()
    worker = Worker()
    del worker


async def main() -> None:
    with phase():
        calls()
