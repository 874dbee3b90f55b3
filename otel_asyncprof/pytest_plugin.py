"""pytest: --asyncprof profiles the tests, --asyncprof-max-block fails those whose tasks hold the loop too long."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from .cli.values import duration

if TYPE_CHECKING:
    from .testing_session import SessionProfile

_FOLDER = "asyncprof_folder"  # of the tests' recordings, as workers of pytest-xdist are told it
_RATE, _FINE_RATE = 100, 500  # looks per second; the second when holds are measured


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options."""
    group = parser.getgroup("asyncprof", "profiling of asynchronous code")
    group.addoption("--asyncprof", action="store_true", help="profile the tests")
    group.addoption(
        "--asyncprof-report", metavar="FILE", help="profile the tests and write FILE: .html, .jsonl, .pprof and others"
    )
    group.addoption(
        "--asyncprof-max-block",
        type=_duration,
        metavar="TIME",
        help="fail a test whose task holds the event loop longer (100ms)",
    )


def _duration(text: str) -> float:
    try:
        return duration(text)
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"--asyncprof-max-block: {error}") from None


def pytest_configure(config: pytest.Config) -> None:
    """Registers the plugin's work when one of the options asks for it."""
    options = config.option
    if options.asyncprof or options.asyncprof_report or options.asyncprof_max_block:
        config.pluginmanager.register(_AsyncProf(config), "asyncprof-session")


class _AsyncProf:
    """Profiles each process in which tests run; the one that the user has started writes the report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._max_block: float | None = config.option.asyncprof_max_block
        worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._is_worker = worker_input is not None
        self._folder: str = worker_input[_FOLDER] if worker_input else tempfile.mkdtemp(prefix="otel-asyncprof-")
        self._profile: SessionProfile | None = None
        self._lines: list[str] = []
        if not self._is_worker and config.option.asyncprof_report:
            self._check_report()

    def _check_report(self) -> None:
        from .cli.messages import Failure

        try:
            self._output().check()
        except Failure as failure:
            raise pytest.UsageError(f"--asyncprof-report: {failure}") from None

    def _output(self) -> Any:
        from .cli.output import Output

        return Output.of_file(self._config.option.asyncprof_report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tells a worker of pytest-xdist where to leave what it records."""
        node.workerinput[_FOLDER] = self._folder

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Runs a test, then looks at what it did to its loop."""
        if self._profile is None:
            from .testing_session import SessionProfile

            self._profile = SessionProfile(self._folder, _FINE_RATE if self._max_block else _RATE)
        self._profile.begin_test()
        result = yield
        if self._max_block and (complaint := self._profile.complaint(self._max_block)):
            pytest.fail(complaint, pytrace=False)
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Ends the profile, and writes the report when all workers have ended theirs."""
        if self._profile is not None:
            self._profile.end()
        if not self._is_worker:
            from .testing_session import summarize

            output = self._output() if self._config.option.asyncprof_report else None
            self._lines = summarize(self._folder, output)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Says what was seen, and where the report is."""
        terminalreporter.section("asyncprof")
        for line in self._lines:
            terminalreporter.line(line)

    def pytest_unconfigure(self) -> None:
        """Removes what the report was made of."""
        if not self._is_worker:
            shutil.rmtree(self._folder, ignore_errors=True)
