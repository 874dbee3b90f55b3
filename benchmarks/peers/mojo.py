"""Stacks of a MOJO stream, version 3, as echion writes it."""

from collections.abc import Iterator
from typing import Final

METADATA: Final = 1
STACK: Final = 2
FRAME: Final = 3
FRAME_INVALID: Final = 4
FRAME_REF: Final = 5
FRAME_KERNEL: Final = 6
GC: Final = 7
IDLE: Final = 8
METRIC_TIME: Final = 9
METRIC_MEMORY: Final = 10
STRING: Final = 11
STRING_REF: Final = 12


class _Reader:
    def __init__(self, stream: bytes, at: int) -> None:
        self.stream, self.at = stream, at

    def integer(self) -> int:
        stream, at = self.stream, self.at
        byte = stream[at]
        value, negative, shift = byte & 0x3F, byte & 0x40, 6
        while byte & 0x80:
            at += 1
            byte = stream[at]
            value |= (byte & 0x7F) << shift
            shift += 7
        self.at = at + 1
        return -value if negative else value

    def text(self) -> str:
        end = self.stream.find(0, self.at)
        if end < 0:
            raise IndexError("the stream ends within a text")
        found = self.stream[self.at : end].decode(errors="replace")
        self.at = end + 1
        return found


def mojo_stacks(stream: bytes, begin: int) -> Iterator[tuple[str, ...]]:
    """The function names, root first, of the complete stacks that start at or behind an offset."""
    if stream[:4] != b"MOJ\x03":
        raise ValueError("not a MOJO stream of version 3")
    reader = _Reader(stream, 4)
    strings: dict[int, str] = {}
    names: dict[int, int] = {}
    stack: list[str] = []
    started = 0
    try:
        while reader.at < len(stream):
            event, reader.at = stream[reader.at], reader.at + 1
            if event == FRAME_REF:
                stack.append(strings.get(names.get(reader.integer(), 0), "?"))
            elif event == STACK:
                stack, started = [], reader.at - 1
                reader.integer()
                reader.integer()
                reader.text()
            elif event in (METRIC_TIME, METRIC_MEMORY):
                reader.integer()
                if event == METRIC_TIME and started >= begin:
                    yield tuple(stack)
            elif event == FRAME:
                key, _, name = reader.integer(), reader.integer(), reader.integer()
                names[key] = name
                for _ in ("line", "line end", "column", "column end"):
                    reader.integer()
            elif event == STRING:
                key = reader.integer()
                strings[key] = reader.text()
            elif event == STRING_REF:
                reader.integer()
            elif event == METADATA:
                reader.text()
                reader.text()
            elif event == FRAME_KERNEL:
                reader.text()
            elif event == FRAME_INVALID:
                stack.append("?")
            elif event not in (GC, IDLE):
                raise ValueError(f"MOJO event {event}")
    except IndexError:
        return  # cut off
