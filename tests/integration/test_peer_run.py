"""The benchmark beside other profilers, as far as it needs none of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Ours against no profiler, on two programs."""
    output = tmp_path_factory.mktemp("results") / "quick.json"
    command = [sys.executable, "-m", "peers", "--quick", "--profilers", "ours", "none", "--output", str(output)]
    command += ["--programs", "waiting-100-busy", "web"]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS)}
    result = subprocess.run(command, env=environment, cwd=output.parent, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return json.loads(output.read_text()), output.with_suffix(".md").read_text()


def test_the_benchmark_measures_ours_and_none(report):
    """Work is done, and all the stacks of ours are right."""
    content, _ = report
    waiting = content["summary"]["waiting-100-busy"]
    assert list(waiting) == ["none", "ours"]
    assert [row["failures"] for of_program in content["summary"].values() for row in of_program.values()] == [[]] * 4
    assert waiting["none"]["figures"]["stacks_per_second"]["median"] == 0
    verdict = next(run["figures"]["verdict"] for run in content["runs"] if run["profiler"] == "ours")
    assert verdict["leaves"] > 0
    assert verdict["right"] == verdict["right_parent"] == verdict["leaves"]
    for run in content["runs"]:
        assert run["figures"]["units"] > 0


def test_the_report_is_written_beside_the_figures(report):
    """One section for each program."""
    _, text = report
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Machine and settings",
        "## Profilers",
        "## waiting-100-busy",
        "## web",
        "## What our own counters say",
    ]
