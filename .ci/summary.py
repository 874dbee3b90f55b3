"""Sums up pytest's JUnit reports: names what failed, and fails on skips that would hide a missing tool."""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

# A test may be skipped for what the interpreter or the processor is, never for what the machine lacks.
HIDING = ("not installed", "not found", "could not import", "cannot")


def main(other_failures: int, paths: list[str]) -> int:
    """Prints the summary of all reports; 1 when anything failed or nothing ran."""
    passed, skipped, failed = 0, 0, other_failures
    skips: Counter[str] = Counter()
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            name = f"{path.rpartition('junit-')[2].removesuffix('.xml')}: {case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                print("FAILED", name)
            elif skip is not None and skip.get("type") != "pytest.xfail":
                reason = skip.get("message") or ""
                skips[reason] += 1
                if any(word in reason for word in HIDING):
                    failed += 1
                    print("SKIPPED, which counts as failed here:", name)
                else:
                    skipped += 1
            else:
                passed += 1
    for reason, count in skips.items():
        print(f"skipped {count}: {reason}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped" if skipped else f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
