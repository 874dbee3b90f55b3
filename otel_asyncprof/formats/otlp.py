"""Protobuf: ProfilesData messages, each behind its length as a varint, as the `file` exporter appends them."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

MAX_MESSAGE_BYTES = 1 << 31  # what protobuf allows
_MAX_SHIFT = 28
_PREFIX_BYTES = 4


def to_otlp(profiles: "Iterable[ProfilesData]") -> bytes:
    """All messages, one behind the other."""
    return b"".join(delimited(data.SerializeToString()) for data in profiles)


def delimited(message: bytes) -> bytes:
    """A message behind its length."""
    return varint(len(message)) + message


def varint(number: int) -> bytes:
    """A number of at least 0 as protobuf writes it."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def messages_of(content: bytes) -> Iterator[bytes]:
    """The messages behind their lengths; EOFError at one that is cut off, and where something else is found."""
    position = 0
    while position < len(content):
        size, shift = 0, 0
        while True:
            if position == len(content) or shift > _MAX_SHIFT:
                raise EOFError("it ends within the length of a message, or holds something else")
            byte = content[position]
            position += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if size >= MAX_MESSAGE_BYTES or position + size > len(content):
            raise EOFError("it ends within a message")
        yield content[position : position + size]
        position += size


def prefixed_messages_of(content: bytes) -> Iterator[bytes]:
    """The messages behind lengths of four bytes, as a Collector's `file` exporter writes them; EOFError as above."""
    position = 0
    while position < len(content):
        begin = position + _PREFIX_BYTES
        end = begin + int.from_bytes(content[position:begin])
        if end > len(content):
            raise EOFError("it ends within a message")
        yield content[begin:end]
        position = end
