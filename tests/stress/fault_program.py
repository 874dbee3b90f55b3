"""Looks at a program at rest, again and again while reads fail, and writes what was seen as JSON.

Arguments: the file to write, how memory is read (guarded or syscall), of how many reads one fails in turn.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import program_at_rest
from targets import support

from otel_asyncprof import _anchors, _native

SETTLED_LOOKS = 5
LOOKS_BETWEEN_EXACT_ONES = 8
MOST_TRIES = 100
READS_OF_REST = 10  # a look at a process at rest takes fewer than one in so many
REST_STRIDE = 5
NAMES_ARE_READ_AGAIN_NS = 2_000_000_000
LINE_BYTES = 1 << 17


class Looker:
    """The test build's looks, one call each."""

    def __init__(self, guarded: bool) -> None:
        self.native = ctypes.CDLL(_native.__file__)
        self.native.faults_weights.restype = ctypes.POINTER(ctypes.c_uint64)
        for name in ("faults_reads", "faults_pending_cpu_ns", "faults_drops"):
            getattr(self.native, name).restype = ctypes.c_uint64
        self.native.faults_look.argtypes = [ctypes.c_uint64, ctypes.c_bool, ctypes.c_uint64]
        self.native.faults_look_after_rest.argtypes = [ctypes.c_uint64]
        self.native.faults_look_after_rest.restype = ctypes.c_uint64
        self.native.faults_begin.argtypes = [ctypes.c_char_p, ctypes.c_bool]
        self._held = ctypes.c_long.in_dll(self.native, "held_blocks")
        self._held_before = self._held.value
        self.use(_anchors.collect())
        assert self.native.faults_begin(_anchors.asyncio_directory().encode(), guarded)

    def use(self, anchors: dict[str, int]) -> None:
        """Looks begin at these from now on."""
        _native.prepare(anchors=anchors)

    def end(self) -> int:
        """How many blocks of memory are left."""
        self.native.faults_end()
        return self._held.value - self._held_before

    def look(self, fail: int = 0, cold: bool = True) -> bytes:
        """The weights of all samples known so far; those that this look has not seen have none."""
        self.native.faults_look(fail, cold, NAMES_ARE_READ_AGAIN_NS if cold else 0)
        return self._weights()

    def look_after_rest(self, warm_reads: int, fail: int = 0) -> bytes:
        """The same of the last of three looks between which nothing runs; one read of the second, a full one, fails.

        A look may be short because of that read: of a list of tasks, say.
        """
        enough = min(fail or warm_reads, warm_reads / READS_OF_REST)
        assert any(self.native.faults_look_after_rest(fail) >= enough for _ in range(MOST_TRIES)), fail
        return self._weights()

    def _weights(self) -> bytes:
        return ctypes.string_at(self.native.faults_weights(), 8 * self.native.faults_samples()).rstrip(b"\0")

    def describe(self, weights: bytes) -> list[list[str]]:
        """The samples that have a weight: those of the last look."""
        text = ctypes.create_string_buffer(LINE_BYTES)
        found = []
        for sample in range((len(weights) + 7) // 8):
            if any(weights[8 * sample : 8 * sample + 8]):
                self.native.faults_describe(sample, text, LINE_BYTES)
                found.append(text.value.decode().split("\t"))
        return found


def settle(looker: Looker) -> tuple[bytes, int, int]:
    """The look at the program at rest, and how many reads it takes, cold and warm."""
    seen: list[tuple[bytes, int, int]] = []
    deadline = time.monotonic() + program_at_rest.TIMEOUT_SECONDS
    while len(seen) < SETTLED_LOOKS or len(set(seen[-SETTLED_LOOKS:])) > 1:
        assert time.monotonic() < deadline, seen[-SETTLED_LOOKS:]
        cold = looker.look()
        reads = looker.native.faults_reads()
        warm = looker.look(cold=False)
        if cold == warm:
            seen.append((cold, reads, looker.native.faults_reads()))
    return seen[-1]


def sweep(looker: Looker, exact: bytes, reads: range, cold: bool) -> Iterator[tuple[int, str, bytes]]:
    """One look for each read that fails, and one after it: what is not exact about them."""
    for n in reads:
        drops = looker.native.faults_drops()
        seen = looker.look(n, cold)
        if seen != exact:
            yield n, "counted" if looker.native.faults_drops() > drops else "not counted", seen
        if seen != exact or n % LOOKS_BETWEEN_EXACT_ONES == 0:
            # Warm after cold: what was learned from a failed read is met again.
            after = looker.look(cold=not cold)
            if after != exact:
                yield n, "afterwards", after
                looker.look()


def sweep_before_rest(looker: Looker, exact: bytes, warm_reads: int, stride: int) -> Iterator[tuple[int, str, bytes]]:
    """The look whose samples stand for a time of rest has a read that fails: what is not exact about the rest."""
    for n in range(1, warm_reads + 1, stride):
        rest = looker.look_after_rest(warm_reads, n)
        if rest != exact:
            yield n, "rest", rest


def rests_exactly(looker: Looker, exact: bytes, warm_reads: int) -> bool:
    """Whether the last of three looks has found nothing to read, and what it stands for is right."""
    return looker.look_after_rest(warm_reads) == exact and looker.native.faults_reads() < warm_reads / READS_OF_REST


def main(result: str, method: str, stride: int) -> None:
    program_at_rest.bring_to_rest()
    gc.collect()
    gc.disable()  # nothing else runs from here on
    looker = Looker(method == "guarded")
    exact, cold_reads, warm_reads = settle(looker)
    pending, faults = looker.native.faults_pending_cpu_ns(), _native.stats()["faults"]
    inexact: list[Any] = []
    for cold, reads in ((True, cold_reads), (False, warm_reads)):
        for n, what, seen in sweep(looker, exact, range(1, reads + 1, stride), cold):
            inexact.append([n, what, looker.describe(seen)])
    rests = any(
        rests_exactly(looker, exact, warm_reads) for _ in range(MOST_TRIES)
    )  # a loaded machine is rarely at rest
    for n, what, seen in sweep_before_rest(looker, exact, warm_reads, stride * REST_STRIDE):
        inexact.append([n, what, looker.describe(seen)])
    found: dict[str, Any] = {
        "exact": looker.describe(exact),
        "tasks": support.snapshot()["tasks"],
        "reads": [cold_reads, warm_reads],
        "inexact": inexact,
        "rests": rests,
        "faults": _native.stats()["faults"] - faults,
        "pending_grown": looker.native.faults_pending_cpu_ns() - pending,
        "held": looker.end(),
    }
    with open(result, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    os._exit(0)  # the program never ends
