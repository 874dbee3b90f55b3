"""Protobuf's wire format, as far as pprof and Pyroscope's pushes need it."""

from collections.abc import Iterator


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order: (number, integer or bytes)."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        yield tag >> 3, message[at : at + size]
        at += size


def integers(value: int | bytes) -> list[int]:
    """A repeated integer, packed or one of many."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found


def integer(value: int | bytes) -> int:
    """A field that is an integer."""
    assert isinstance(value, int)
    return value


def chunk(value: int | bytes) -> bytes:
    """A field that is bytes, a string or a message."""
    assert isinstance(value, bytes)
    return value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = message[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
