"""Copies of live objects in other memory: every pointer of a copied object to another one leads to that one's copy."""

from __future__ import annotations

import asyncio
import bisect
import ctypes
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
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


def blocks_of_set(references: set[weakref.ref[Any]]) -> set[Block]:
    """A set of weak references, as asyncio keeps its tasks up to 3.13."""
    table = word_at(id(references) + SET_TABLE), (word_at(id(references) + SET_MASK) + 1) * SET_ENTRY_BYTES
    blocks = {(id(references), SET_BYTES)} | {(id(each), type(each).__basicsize__) for each in references}
    return blocks if id(references) <= table[0] < id(references) + SET_BYTES else blocks | {table}


def node_of(task: Any) -> int:
    """From 3.14 on: what links a task with those before and behind it, {next, previous}, at its end."""
    return id(task) + asyncio.Task.__basicsize__ - 2 * WORD


def list_with(task: Any, tasks: Iterable[Any]) -> tuple[int, list[Any]]:
    """The head of the list that a task stands in, and all tasks of it."""
    known = {node_of(each): each for each in tasks}
    found, node = [task], word_at(node_of(task))
    while node in known:
        found.append(known[node])
        node = word_at(node)
    before = word_at(node_of(task) + WORD)
    while before in known:
        found.insert(0, known[before])
        before = word_at(before + WORD)
    assert before == node, "a list that is no ring"
    return node, found


def lead_to_copies(head: int, moved: Callable[[int], int]) -> None:
    """A list's head names the copies of its first and last task; those name it already."""
    for at in (head, head + WORD):
        ctypes.c_uint64.from_address(at).value = moved(word_at(at))


def clone(tasks: Iterable[Any], also: set[Block], kept: Iterable[int], base: int) -> tuple[bytes, Callable[[int], int]]:
    """The memory, to be put at base, of copies of tasks, all below and some other blocks; address -> that of its copy.

    What is at the addresses to be kept is not copied: readers know it by them.
    """
    blocks = also | set(map(block_of, reachable(tasks, kept)))
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
    return bytes(memory), moved
