"""Copies of live objects in other memory: every pointer of a copied object to another one leads to that one's copy."""

from __future__ import annotations

import asyncio
import bisect
import ctypes
import gc
import sys
import types
import weakref
from collections.abc import Iterable, Iterator
from contextvars import Context
from typing import Any

WORD = 8
PAGE = 4096
ALIGNMENT = 16
SET_MASK, SET_TABLE, SET_BYTES, SET_ENTRY_BYTES = 32, 40, 200, 16  # of a set object; the same in 3.11 to 3.13
GENERATORS = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)
PLAIN = (
    *(asyncio.Task, asyncio.Future, Context, types.CodeType, types.BuiltinFunctionType, types.FunctionType),
    *(types.CellType, types.MethodType, tuple, str, bytes, int),
)
BY_NAME = {
    *("hamt", "hamt_bitmap_node", "hamt_array_node", "async_generator_asend", "async_generator_athrow"),
    *("anext_awaitable", "coroutine_wrapper"),
}

Block = tuple[int, int]  # address, size


def is_copied(value: object) -> bool:
    """Whether all that readers take of an object lies in its own block."""
    return type(value) in (*PLAIN, *GENERATORS) or type(value).__name__ in BY_NAME


def block_of(value: Any) -> Block:
    """Where an object is, without the collector's head before it."""
    if isinstance(value, GENERATORS):
        code = next(getattr(value, name) for name in ("cr_code", "gi_code", "ag_code") if hasattr(value, name))
        slots = len(code.co_varnames) + len(code.co_cellvars) + len(code.co_freevars) + code.co_stacksize
        return id(value), type(value).__basicsize__ + WORD * slots
    return id(value), sys.getsizeof(value) - (ALIGNMENT if gc.is_tracked(value) else 0)


def held_by(value: Any) -> Iterable[Any]:
    """What readers reach from an object."""
    if isinstance(value, types.CodeType):
        return value.co_qualname, value.co_filename, value.co_linetable
    if isinstance(value, types.FunctionType):
        return value.__code__, value.__closure__
    if isinstance(value, asyncio.Task):
        return *gc.get_referents(value), value.get_coro()
    if isinstance(value, GENERATORS):
        code = next(getattr(value, name) for name in ("cr_code", "gi_code", "ag_code") if hasattr(value, name))
        return *gc.get_referents(value), code
    return gc.get_referents(value)


def reachable(tasks: Iterable[Any], kept: Iterable[int]) -> Iterator[Any]:
    """The tasks and all that is copied with them; not what is at the addresses to be kept."""
    waiting, seen = list(tasks), set(kept)
    while waiting:
        value = waiting.pop()
        if id(value) in seen or not is_copied(value):
            continue
        seen.add(id(value))
        yield value
        waiting += held_by(value)


def word_at(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def clone(references: set[weakref.ref[Any]], kept: Iterable[int], base: int) -> tuple[bytes, int]:
    """The memory, to be put at base, of copies of a set of weak references and of all below; where the set is then.

    What is at the addresses to be kept is not copied: readers know it by them.
    """
    values = [value for reference in references if (value := reference()) is not None]
    table = word_at(id(references) + SET_TABLE), (word_at(id(references) + SET_MASK) + 1) * SET_ENTRY_BYTES
    blocks = {(id(references), SET_BYTES), *map(block_of, reachable(values, kept))}
    blocks |= {(id(reference), type(reference).__basicsize__) for reference in references}
    if not id(references) <= table[0] < id(references) + SET_BYTES:
        blocks.add(table)
    places: list[tuple[int, int, int]] = []  # address, size, copy
    end = base
    for address, size in sorted(blocks):
        places.append((address, size, end))
        end += (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    memory = bytearray((end - base + PAGE - 1) // PAGE * PAGE)
    starts = [address for address, _, _ in places]

    def moved(word: int) -> int:
        index = bisect.bisect_right(starts, word) - 1
        address, size, copy = places[index]
        return copy + word - address if index >= 0 and word < address + size else word

    for address, size, copy in places:
        memory[copy - base : copy - base + size] = ctypes.string_at(address, size)
        for at in range(copy - base, copy - base + size - WORD + 1, WORD):
            word = int.from_bytes(memory[at : at + WORD], "little")
            memory[at : at + WORD] = moved(word).to_bytes(WORD, "little")
    return bytes(memory), moved(id(references))
