"""Prints docs/configuration.md: the text beside this file, and in it the options themselves."""

import ast
import dataclasses
import inspect
import itertools
import re
from pathlib import Path

from otel_asyncprof import ProfilerConfig, environment_variables
from otel_asyncprof._config import OPTIONS
from otel_asyncprof._declarative import BLOCK_PATHS

TEMPLATE = Path(__file__).with_suffix(".md")


def texts() -> dict[str, str]:
    """What stands below each constant of environment_variables."""
    body = ast.parse(inspect.getsource(environment_variables)).body
    found = {}
    for constant, text in itertools.pairwise(body):
        if isinstance(constant, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            (target,) = constant.targets
            found[ast.unparse(target)] = re.sub(r"\s+", " ", str(text.value.value).replace("``", "`"))
    return found


def default_of(name: str) -> str:
    """The default as one would write it."""
    default = next(field.default for field in dataclasses.fields(ProfilerConfig) if field.name == name)
    if isinstance(default, bool):
        return str(default).lower()
    return (
        ",".join(default)
        if isinstance(default, tuple)
        else f"{default:g}"
        if isinstance(default, float)
        else f"{default}"
    )


def section(names: list[str]) -> str:
    """A heading for each option, and what there is to say of it."""
    explained = texts()
    parts = []
    for name in names:
        option = OPTIONS[name]
        explanation = explained[option.variable]
        lines = [f"- variable: `{option.variable}`"]
        if name in BLOCK_PATHS:
            lines.append(f"- in the exporter's block: `{BLOCK_PATHS[name]}`")
        lines.append(f"- allowed: {option.allowed}")
        if not option.read_by_exporter:
            explanation = re.sub(r" Default: \S+$", "", explanation)
            lines.append(f"- default: `{default_of(name)}`")
        parts.append("\n".join([f"### `{name}`", "", explanation, "", *lines, ""]))
    return "\n".join(parts)


def page() -> str:
    """The whole page."""
    otlp = [name for name, option in OPTIONS.items() if option.read_by_exporter]
    own = [name for name in OPTIONS if name not in otlp]
    template = TEMPLATE.read_text(encoding="utf-8")
    return template.replace("{own}", section(own)).replace("{otlp}", section(otlp))


if __name__ == "__main__":
    print(page(), end="")
