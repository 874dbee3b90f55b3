"""What the tests of the C base compile, and how strictly."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    *sorted((ROOT / "ext").glob("safe_copy*.c")),
    ROOT / "ext" / "signals.c",
    ROOT / "ext" / "signal_origin.c",
    ROOT / "ext" / "reading.c",
    ROOT / "ext" / "clock.c",
    ROOT / "ext" / "os" / "linux.c",
]
STRICT = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-pthread", f"-I{ROOT / 'ext'}"]
