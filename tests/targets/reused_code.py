"""Functions that are made, run for a while and deleted: the next one's code lies at the same address."""

import gc

from targets.support import REPORT, phase, spin

COUNT = 40
addresses = set()


def run_once(number: int) -> None:
    namespace = {"spin": spin}
    exec(compile(f"def f_{number:03}():\n spin(0.03)", f"/generated/file_{number:03}.py", "exec"), namespace)
    addresses.add(id(namespace[f"f_{number:03}"].__code__))
    namespace[f"f_{number:03}"]()


async def main() -> None:
    with phase():
        for number in range(COUNT):
            run_once(number)
            gc.collect()
    REPORT["addresses"] = len(addresses)
