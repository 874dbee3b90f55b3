"""Sums up pytest's JUnit reports: names what failed, and fails on skips that would hide a missing tool.

A test that failed beside others and passes when it is run again alone is named as unstable, and counts as passed.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

# A test may be skipped for what the interpreter or the processor is, never for what the machine lacks.
HIDING = ("not installed", "not found", "could not import", "cannot")


def cases(path: Path) -> dict[str, ElementTree.Element]:
    """The tests of a report by their names."""
    version = path.stem.partition("-")[2]
    found = ElementTree.parse(path).iter("testcase")
    return {f"{version}: {case.get('classname')}.{case.get('name')}": case for case in found}


def all_cases(folder: Path, pattern: str) -> dict[str, ElementTree.Element]:
    """The tests of all reports of a kind."""
    return {name: case for path in sorted(folder.glob(pattern)) for name, case in cases(path).items()}


def has_failed(case: ElementTree.Element) -> bool:
    """In its body, or in what is set up for it."""
    return case.find("failure") is not None or case.find("error") is not None


def main(other_failures: int, folder: Path) -> int:
    """Prints the summary of all reports; 1 when anything failed or nothing ran."""
    passed, skipped, failed = 0, 0, other_failures
    skips: Counter[str] = Counter()
    first, again = (all_cases(folder, pattern) for pattern in ("junit-*.xml", "again-*.xml"))
    for name, case in first.items():
        skip = case.find("skipped")
        if has_failed(case) and name in again and not has_failed(again[name]):
            passed += 1
            print("UNSTABLE", name)
        elif has_failed(case):
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
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))
