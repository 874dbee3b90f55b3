"""Prints what pyproject.toml requires at run time: its ranges (newest), or the lower end of each (oldest)."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Of the tests' own requirements those that are ranges: a pinned one fits one release only.
OF_TESTS = [each for each in EXTRAS["test"] if each.startswith("opentelemetry-") and ">=" in each]
RANGES = sorted({*PROJECT["dependencies"], *EXTRAS["instrument"], *OF_TESTS})
TOOLS = [each for each in EXTRAS["test"] if each.startswith("pytest")]

match sys.argv[1:]:
    case ["newest"]:
        print(*RANGES, *TOOLS, sep="\n")
    case ["oldest"]:
        print(*(re.sub(r">=([^,]+).*", r"==\1", each) for each in RANGES), *TOOLS, sep="\n")
    case _:
        sys.exit("oldest or newest")
