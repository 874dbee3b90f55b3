"""Tasks, threads, functions, files and spans that are called what nobody would call them."""

import asyncio
import threading
import types
from typing import Any

from targets.support import CAPTURE_OPTIONS, REPORT, keep, tracer

from otel_asyncprof.testing import capture

# ruff: noqa: RUF001 (letters that look like others are the point)
NAMES = {
    "nothing": "",
    "a space": " ",
    "nul": "before\0after",
    "nul alone": "\0",
    "control characters": "\x01\t\r\n\x1b[31m\x7f\x85",
    "ascii, compact": "plain",
    "one byte": "größe\xff",
    "two bytes": "函数€",
    "four bytes": "𝒻🐍",
    "all kinds": "aé函𝒻",
    "right to left": "\u202eabc \u05d0\u05d1\u05d2 \u0627\u0628\u062a\u202c",
    "combining": "e\u0301" * 50,
    "noncharacters": "\ufeff\ufffe\uffff\U0010ffff",
    "lone surrogates": "a\ud800b\udfffc",
    "surrogates alone": "\udc80\udcff",
    "like ours": "<overflow>",
    "like json": '{"a": ["\\"]}',
    "like a format": "%s %n {0} ${x} `rm`",
    "10 kB": "x" * 10_000,
    "10 kB of four bytes": "🐍" * 2_500,
    "10 MB": "y" * 10_000_000,
    "20 MB of two bytes": "函" * 20_000_000,
}
FIRST_LINE = 1_000_000
END = threading.Event()


class Text(str):
    """A str that is unlike any other, with its characters apart from it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    def __hash__(self) -> int:
        raise RuntimeError("not hashable")

    def __str__(self) -> str:
        return self

    def encode(self, *_: object) -> bytes:
        raise RuntimeError("not encodable")


class Named:
    """An object whose str() is a Text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return Text(self.text)


async def waits() -> None:
    await asyncio.get_running_loop().create_future()


def rests() -> None:
    END.wait()


def renamed(function: Any, name: str, line: int) -> Any:
    code = function.__code__.replace(
        co_name=name, co_qualname=name, co_filename=f"/srv/{name}.py", co_firstlineno=FIRST_LINE + line
    )
    return types.FunctionType(code, function.__globals__, "f")


async def main() -> None:
    kept = []
    for line, name in enumerate(NAMES.values()):
        odd = line % 2
        with tracer().start_as_current_span(Text(name) if odd else name, end_on_exit=False):
            kept.append(asyncio.create_task(renamed(waits, name, line)()))
        kept[-1].set_name(Named(name) if odd else name)
        rest = renamed(rests, name, line)
        threading.Thread(target=rest, name=Text(name) if odd else name, daemon=True).start()
    await asyncio.sleep(0)
    with capture(**CAPTURE_OPTIONS) as profile:
        await asyncio.sleep(1)
    keep(profile)
    END.set()
    REPORT["types"] = sorted({type(task.get_name()).__name__ for task in kept})
