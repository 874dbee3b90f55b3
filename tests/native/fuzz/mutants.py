"""Bounds that are taken out of a source, one at a time, and the target that must find it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One bound less."""

    source: str
    bound: str
    without: str
    target: str
    since: int = 11  # minor version: where what it takes away is of use


MUTANTS = [
    Mutant("threads.c", "count == capacity || states == MAX_STATES", "states == MAX_STATES", "threads"),
    Mutant("threads.c", "count == capacity || states == MAX_STATES", "count == capacity", "thread cycle"),
    Mutant("unwind.c", "end - start > room) return;", "end - start > UINT64_MAX - room) return;", "stacks"),
    Mutant(
        "coroutine.c",
        "if (chain->count == chain->capacity) return",
        "if (chain->count == SIZE_MAX) return",
        "coroutines",
    ),
    Mutant("coroutine.c", "chain->wrappers++ == MAX_WRAPPERS", "chain->wrappers++ == UINT32_MAX", "coroutines"),
    Mutant("awaiters.c", "if (search->n_found < MAX_AWAITERS) ", "", "awaiters"),
    Mutant("awaited.c", "list, children[MAX_CHILDREN];", "list, children[1];", "awaited"),
    Mutant("awaited.c", "if (hops == MAX_HOPS || ", "if (", "gather cycle"),
    Mutant("awaited.c", "i < count && *left; i++", "i < count; i++", "gather cycle"),
    Mutant("task_set.c", "if (count > TASK_SET_SLOTS_PER_READ) count = TASK_SET_SLOTS_PER_READ;", "", "task sets"),
    Mutant("task_list.c", "retries++ == MAX_RETRIES", "retries++ == UINT32_MAX", "task sets", since=14),
    Mutant(
        "tasks.c",
        "realloc(table->by_address, 2 * capacity * sizeof *by_address)",
        "realloc(table->by_address, capacity * sizeof *by_address)",
        "tasks",
    ),
    Mutant("span_link.c", "level < MAX_LEVELS && node", "level < UINT32_MAX && node", "trie cycle"),
    Mutant("span_link.c", "size > 2 * MAX_COLLISIONS", "size > INT64_MAX", "spans"),
    Mutant("read_object.c", "bit / 8 >= size", "bit / 8 >= 64", "numbers"),
    Mutant("read_object.c", "depth < MAX_BASES && type", "depth < UINT32_MAX && type", "containers"),
    Mutant(
        "read_object.c",
        "if (used > MAX_STRING_BYTES - LONGEST_CHARACTER - ELLIPSIS) {",
        "if (used > SIZE_MAX / 2) {",
        "strings",
    ),
    Mutant("read_dict.c", " || entries->count > MAX_DICT_ENTRIES", "", "attributes"),
    Mutant("code_table.c", "if (size > MAX_LINE_TABLE_BYTES) return NULL;", "", "code"),
    Mutant("tick.c", "if (tick->pool_size + count > tick->pool_capacity) {", "if (!tick->pool) {", "tick"),
    Mutant("tick_threads.c", " && slot < MAX_EAGER_SLOTS", "", "eager set"),
    Mutant("cpython/debug_offsets.c", "return value > published->limit || ", "return ", "offsets"),
    Mutant("arena.c", "size > block->size - block->filled", "size > block->size", "tables"),
    Mutant("protobuf.c", "if (!size || !pb_reserve(buffer, size)) return;", "if (!size) return;", "tables"),
    Mutant(
        "line_table.c",
        "while (at < size && !(table[at] & ENTRY_START));",
        "while (!(table[at] & ENTRY_START));",
        "lines",
    ),
    Mutant(
        "stitch.c",
        "if (count && way->length == 1 + MAX_AWAITING_TASKS) {",
        "if (count && way->length == SIZE_MAX) {",
        "stitch",
    ),
    Mutant("unwind.c", "if (count == MAX_THREAD_FRAMES - 1 || steps", "if (steps", "stacks"),
    Mutant("unwind.c", "walks < MAX_WALKS; walks++", "walks < UINT32_MAX; walks++", "stacks"),
    Mutant("unwind.c", "most = count < n_again ? count : n_again;", "most = count;", "shorter stack"),
    Mutant("tick_threads.c", "attempt < MAX_ATTEMPTS; attempt++", "attempt < UINT32_MAX; attempt++", "restless thread"),
]


def mutants_for(minor: int) -> list[Mutant]:
    """Each is built once in a run of all Pythons; what is for later ones, on the first of those."""
    if minor >= 14:
        return [mutant for mutant in MUTANTS if mutant.since == minor]
    return [mutant for mutant in MUTANTS if mutant.since == 11][minor % 3 :: 3]
