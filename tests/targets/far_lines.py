"""A generated module with code on its first line, and at lines 300 and 40,000, in statements of several lines."""

from targets.support import burn, phase

LINES = {1: "def near(): burn(0.15)", 300: "def middle():", 303: "    (", 305: "        burn(0.15)", 306: "    )"}
LINES |= {40_000: "def far():", 40_001: "    for _ in range(3):", 40_002: "        try:", 40_003: "            pass"}
LINES |= {
    40_004: "        finally:",
    40_999: "            burn(",
    41_005: "                0.05",
    41_006: "            )",
}
SOURCE = "\n".join(LINES.get(number, "") for number in range(1, max(LINES) + 1))


async def main() -> None:
    namespace = {"burn": burn}
    exec(compile(SOURCE, "/generated/far.py", "exec"), namespace)
    with phase():
        for name in ("near", "middle", "far"):
            namespace[name]()
