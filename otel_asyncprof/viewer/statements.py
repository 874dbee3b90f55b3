"""Statements without their values: the same query with other values is the same query."""

import re

MAX_CHARACTERS = 4096  # of a statement that is normalised; what is longer is cut

_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|$))
    | (?P<text>(?:\b[eEnNbBxX])?'(?:[^'\\]|\\.|'')*'?)
    | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
    | (?P<name>"(?:[^"]|"")*"|`[^`]*`|\[[A-Za-z_][^\]]*\])
    | (?P<place>\$\d+|(?<!:):[A-Za-z_]\w*|%\(\w+\)s|%s|@p?\d+\b|\?\d*)
    | (?P<number>(?<![\w.])[-+]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?![\w.]))
    | (?P<word>\w+)
    | (?P<space>\s+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LIST = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")
_ROWS = re.compile(r"(\(\?\))(?:\s*,\s*\(\?\))+")
_REDIS = {"redis", "memcached", "valkey"}


def normalised(statement: str, system: str = "") -> str:
    """On one line, with ? for every value; lists of values are as long as one value."""
    statement = statement[:MAX_CHARACTERS]
    if system in _REDIS:
        command, *rest = statement.split(None, 1)[:2] or [""]
        return f"{command.upper()} ?" if rest else command.upper()
    parts = []
    for match in _TOKEN.finditer(statement):
        match match.lastgroup:
            case "comment" | "space":
                parts.append(" ")
            case "text" | "place" | "number" | "dollar" | "tag":
                parts.append("?")
            case _:
                parts.append(match.group())
    text = " ".join("".join(parts).split())
    return _ROWS.sub(r"\1", _LIST.sub("(?)", text))
