"""Where an interpreter's headers are."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def ask(python: str, code: str) -> str:
    """What an interpreter says."""
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def headers_for(python: str) -> str:
    """The folder of its headers; for a Python that came without, those of an older one: the extension is abi3."""
    others = subprocess.run([ROOT / ".ci" / "find_pythons"], capture_output=True, text=True, check=False).stdout.split()
    for each in (python, *reversed(others[1::2])):
        folder = ask(each, "import sysconfig; print(sysconfig.get_path('include'))")
        if Path(folder, "Python.h").exists():
            return folder
    raise FileNotFoundError("no Python with headers is here")
