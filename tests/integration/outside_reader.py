"""Reads a process's context and a thread's context out of the memory of another process, as OTEPs 4719 and 4947 say."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

SIGNATURE, VERSION = b"OTEL_CTX", 2
SYMBOL = "otel_thread_ctx_v1"
RELOCATION_TLSDESC = 0x24
PTRACE_PEEKUSER, PTRACE_ATTACH, PTRACE_DETACH = 3, 16, 17
WALL = 0x40000000
FS_BASE = 21 * 8  # in struct user of x86-64
MOST_STATIC_BYTES = 1 << 20  # a TLS descriptor's argument below it is an offset, above it an address

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


@dataclass(frozen=True)
class ProcessContext:
    """What is published for the whole process."""

    resource: dict[str, Any]
    attributes: dict[str, Any]


class Process:
    """Another process, from outside."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        self._maps = [(*(int(each, 16) for each in line.split()[0].split("-")), line) for line in lines]

    def close(self) -> None:
        """Lets go of it."""
        os.close(self._memory)

    def read(self, address: int, size: int) -> bytes:
        """Some of its memory."""
        return os.pread(self._memory, size, address)

    def context(self) -> ProcessContext | None:
        """The process context, if it has one."""
        for start, _, line in self._maps:
            if "/memfd:OTEL_CTX" not in line and "[anon_shmem:OTEL_CTX]" not in line and "[anon:OTEL_CTX]" not in line:
                continue
            signature, version, size, published_at, payload = struct.unpack("=8sIIQQ", self.read(start, 32))
            if (signature, version) != (SIGNATURE, VERSION):
                continue
            assert published_at != 0
            content = self.read(payload, size)
            assert self.read(start + 16, 8) == published_at.to_bytes(8, "little")
            return _decoded(content)
        return None

    def _library(self) -> tuple[int, Path]:
        start, line = next((start, line) for start, _, line in self._maps if "_native.abi3.so" in line)
        return start, Path(line.split(maxsplit=5)[5])

    def _variable(self, thread_pointer: int) -> int:
        """The address of the thread-local variable in the thread whose thread pointer this is; 0 before it has one."""
        base, path = self._library()
        listing = subprocess.run(["readelf", "-rW", str(path)], check=True, capture_output=True, text=True).stdout
        line = next(each for each in listing.splitlines() if SYMBOL in each)
        offset, info = (int(field, 16) for field in line.split()[:2])
        assert info & 0xFFFFFFFF == RELOCATION_TLSDESC
        _, argument = struct.unpack("=QQ", self.read(base + offset, 16))
        signed = argument - (1 << 64) if argument >> 63 else argument
        if abs(signed) < MOST_STATIC_BYTES:
            return thread_pointer + signed
        module, of_block = struct.unpack("=QQ", self.read(argument, 16))
        (vector,) = struct.unpack("=Q", self.read(thread_pointer + 8, 8))
        (block,) = struct.unpack("=q", self.read(vector + 16 * module, 8))
        return block + of_block if block > 0 else 0

    def span(self, thread: int) -> list[Any] | None:
        """Trace id, span id and flags of a thread, which is stopped meanwhile; None when there is no span."""
        _ptrace(PTRACE_ATTACH, thread)
        try:
            os.waitpid(thread, WALL)
            ctypes.set_errno(0)
            thread_pointer = libc.ptrace(PTRACE_PEEKUSER, thread, FS_BASE, None) & (1 << 64) - 1
            variable = self._variable(thread_pointer)
            (record,) = struct.unpack("=Q", self.read(variable, 8)) if variable else (0,)
            if not record:
                return None
            trace_id, span_id, valid, flags, size = struct.unpack("=16s8sBBH", self.read(record, 28))
        finally:
            _ptrace(PTRACE_DETACH, thread)
        assert size == 0
        return [trace_id.hex(), span_id.hex(), flags] if valid == 1 else None


def _ptrace(request: int, thread: int) -> None:
    if libc.ptrace(request, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_plain(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


def _decoded(content: bytes) -> ProcessContext:
    resource, attributes, place = Resource(), [], 0
    while place < len(content):
        tag, place = _varint(content, place)
        size, place = _varint(content, place)
        part, place = content[place : place + size], place + size
        if tag == 1 << 3 | 2:
            resource = Resource.FromString(part)
        elif tag == 2 << 3 | 2:
            attributes.append(KeyValue.FromString(part))
    return ProcessContext(
        {each.key: _plain(each.value) for each in resource.attributes},
        {each.key: _plain(each.value) for each in attributes},
    )
