"""Looks at copies of a program's tasks whose memory comes and goes meanwhile, and writes what was seen as JSON.

Arguments: the file to write, and how many faults to wait for.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from typing import Any

import program_at_rest
from cloned_objects import blocks_of_set, clone, lead_to_copies, list_with
from fault_program import Looker, settle

from otel_asyncprof import _anchors, _native

LEAST_LOOKS = 30  # in all, and of those that miss something


def main(result: str, least_faults: int) -> None:
    program_at_rest.bring_to_rest()
    gc.collect()
    gc.disable()
    anchors = _anchors.collect()
    looker = Looker(True)
    original, _, _ = settle(looker)
    originals = looker.describe(original)
    native = ctypes.CDLL(_native.__file__)
    native.churn_address.restype = ctypes.c_uint64
    loop = program_at_rest.LOOPS["main"]
    listed = [task for task in _native.listed_tasks() if task.get_loop() is loop]
    if listed:  # from 3.14 on
        head, tasks = list_with(listed[0], _native.listed_tasks())
        memory, moved = clone(tasks, set(), anchors.values(), native.churn_address())
    else:
        references = {each for each in _anchors._held["scheduled_tasks"] if each().get_loop() is loop}
        tasks = [task for reference in references if (task := reference()) is not None]
        memory, moved = clone(tasks, blocks_of_set(references), anchors.values(), native.churn_address())
    assert native.churn_map(memory, len(memory))
    if listed:
        lead_to_copies(head, moved)  # for good: nothing in that thread ends
    else:
        anchors |= {"scheduled_tasks": moved(id(references))}
    looker.use(anchors)
    exact, _, _ = settle(looker)
    found: dict[str, Any] = {
        "original": originals,
        "exact": looker.describe(exact),
        "inexact": [],
        "pages": len(memory) // 4096,
    }
    before, faults, looks = looker.native.faults_drops(), _native.stats()["faults"], 0
    deadline = time.monotonic() + program_at_rest.TIMEOUT_SECONDS
    assert native.churn_begin()
    while (
        looks < LEAST_LOOKS or len(found["inexact"]) < LEAST_LOOKS or _native.stats()["faults"] - faults < least_faults
    ):
        assert time.monotonic() < deadline, (looks, _native.stats()["faults"] - faults)
        drops = looker.native.faults_drops()
        seen = looker.look(cold=looks % 2 == 0)
        if seen != exact:
            what = "counted" if looker.native.faults_drops() > drops else "not counted"
            found["inexact"].append([looks, what, looker.describe(seen)])
        looks += 1
    assert native.churn_end()
    found |= {
        "faults": _native.stats()["faults"] - faults,
        "looks": looks,
        "drops": looker.native.faults_drops() - before,
    }
    found["again_exact"] = looker.look() == exact and looker.look(cold=False) == exact
    found["held"] = looker.end()
    with open(result, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    os._exit(0)  # the program never ends
