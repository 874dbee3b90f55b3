"""The pages that are made out of the source, or must keep up with it."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_asyncprof import environment_variables
from otel_asyncprof._copy_method import _REPORTS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "otel_asyncprof"
TROUBLESHOOTING = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
REFUSALS = {"ProfilerUnavailable", "ExporterUnavailable", "ConfigurationError"}
OTHER_PROGRAMS = {"cli", "demo", "viewer"}  # which print their own messages


def test_the_configuration_page_is_what_the_options_say() -> None:
    """python .ci/configuration_page.py > docs/configuration.md brings it up to date."""
    page = runpy.run_path(str(ROOT / ".ci" / "configuration_page.py"))["page"]()
    assert (DOCS / "configuration.md").read_text(encoding="utf-8") == page


def test_the_configuration_page_has_every_variable() -> None:
    """Ours, that is: those of the SDK are explained by the SDK."""
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    variables = [name for name in dir(environment_variables) if name.startswith("OTEL_")]
    assert [name for name in variables if f"- variable: `{name}`" not in page] == []


def test_defaults_in_the_texts_of_variables_are_those_of_the_options() -> None:
    """A variable's own text ends with its default."""
    functions = runpy.run_path(str(ROOT / ".ci" / "configuration_page.py"))
    told = {variable: text.rpartition(" Default: ") for variable, text in functions["texts"]().items()}
    for name, option in functions["OPTIONS"].items():
        _, mark, default = told[option.variable]
        if mark and not option.read_by_exporter:
            assert default.strip("`.") == functions["default_of"](name), option.variable


def parts(expression: ast.expr) -> Iterator[list[str]]:
    """What is fixed in each text that an expression may be."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield re.split(r"%[.0-9]*[a-z]", expression.value)
    elif isinstance(expression, ast.JoinedStr):
        yield [piece.value if isinstance(piece, ast.Constant) else "\0" for piece in expression.values]
    elif isinstance(expression, ast.IfExp):
        yield from parts(expression.body)
        yield from parts(expression.orelse)


def texts_of(path: Path) -> Iterator[list[str]]:
    """The fixed parts of what a module logs as a warning, and of the reasons with which it refuses to go on."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "_logger.warning":
            yield from parts(node.args[0])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "self._report":
            yield from parts(node.args[1])
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            if ast.unparse(node.exc.func) in REFUSALS:
                yield from parts(node.exc.args[0])
        elif isinstance(node, ast.Return) and node.value is not None and path.name == "_platform.py":
            yield from parts(node.value)


def messages() -> list[tuple[str, list[str]]]:
    """Every message of the package with the module it is from; what is not fixed is left out."""
    found = [("_copy_method.py", [text]) for text in _REPORTS.values()]
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.split("/")[0] not in OTHER_PROGRAMS:
            found += [(name, [part for part in text if part not in ("", "\0")]) for text in texts_of(path)]
    return [(name, text) for name, text in found if text]


@pytest.mark.parametrize(("module", "text"), messages())
def test_every_message_is_explained(module: str, text: list[str]) -> None:
    """In docs/troubleshooting.md, as code, with … for what differs."""
    pattern = "[^`]*".join(re.escape(part.strip()) for part in text)
    assert re.search(f"`[^`\n]*{pattern}[^`\n]*`", TROUBLESHOOTING), f"{module}: {'…'.join(text)}"


def test_the_messages_are_found() -> None:
    """Some of each kind; else the test above would see nothing."""
    found = {"…".join(text) for _, text in messages()}
    assert len(found) > 40
    assert "otel_asyncprof is already running; this start does nothing" in found
    assert " refused a profile, which is dropped: " in found
    assert "this profiler was shut down" in found
    assert "the free-threaded build of CPython is not supported; use the default build" in found


@pytest.mark.parametrize(
    "page", sorted([*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]), ids=lambda p: p.name
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """To files of this repository."""
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
