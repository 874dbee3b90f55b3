"""What is shown, as text for an issue or an assistant."""

from collections.abc import Sequence
from typing import Any

MAX_BYTES = 4000
_STATES = ("running", "waiting", "ready", "blocked", "not_sampled")
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def duration(microseconds: float) -> str:
    """For people."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.2f} s"
    return f"{microseconds / 1e3:.1f} ms" if microseconds >= 1e3 else f"{microseconds:.0f} µs"


def plain(text: str, most: int = 200) -> str:
    """A name that means nothing to Markdown."""
    text = " ".join(text.split())
    return (text if len(text) <= most else text[: most - 1] + "…").translate(_SPECIAL)


def summary(title: str, lines: Sequence[str], split: dict[str, int], functions: dict[str, Any], scope: str) -> str:
    """A heading, the split and the functions with the most time; under 4 kB."""
    total = sum(split.values())
    shares = ", ".join(
        f"{state.replace('_', ' ')} {split[f'{state}_us'] / total:.0%}"
        for state in _STATES
        if total and split[f"{state}_us"]
    )
    text = [f"### {plain(title)}", "", *(f"- {line}" for line in lines)]
    text += [f"- time: {shares or 'no samples'}", f"- scope: {scope}, {functions['samples']} samples", ""]
    rows = sorted(functions["rows"], key=lambda row: (-row["self_us"], -row["total_us"]))
    table = ["| self | total | function | place |", "|---:|---:|---|---|"]
    table += [
        f"| {duration(row['self_us'])} | {duration(row['total_us'])} | {plain(row['function'], 80)} "
        f"| {plain(row['file'], 120)}:{row['line']} |"
        for row in rows[:30]
    ]
    text += table if rows else []
    kept: list[str] = []
    size = 0
    for line in text:
        size += len(line.encode(errors="replace")) + 1
        if size > MAX_BYTES:
            break
        kept.append(line)
    return "\n".join(kept) + "\n"
