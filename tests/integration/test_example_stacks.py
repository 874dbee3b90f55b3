"""The configuration that examples/ has for backends: well-formed, pinned, and what the real programs accept."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.real_collector import program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOLDERS = ("grafana", "collector", "elastic")
GATES = "--feature-gates=+service.profilesSupport"


def load(path: Path) -> Any:
    """A YAML file that holds one thing."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.y*ml")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_file_is_yaml(path: Path) -> None:
    """None is empty."""
    assert isinstance(load(path), dict)


@pytest.mark.parametrize("folder", FOLDERS)
def test_images_are_pinned_and_what_is_mounted_is_there(folder: str) -> None:
    """Nothing is open to other machines; every service that one waits for exists."""
    services = load(EXAMPLES / folder / "docker-compose.yml")["services"]
    for service in services.values():
        assert re.fullmatch(r"[a-z0-9./-]+:\d+\.\d+\.\d+", service["image"])
        for volume in service.get("volumes", []):
            assert (EXAMPLES / folder / volume.partition(":")[0]).exists(), volume
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert set(service.get("depends_on", [])) <= services.keys()


def test_grafana_leads_from_a_trace_to_its_profile() -> None:
    """By the uid of the other data source, and the name that Pyroscope gives the wall profile."""
    sources = {each["type"]: each for each in load(EXAMPLES / "grafana/datasources/datasources.yaml")["datasources"]}
    link = sources["tempo"]["jsonData"]["tracesToProfiles"]
    assert link["datasourceUid"] == sources["grafana-pyroscope-datasource"]["uid"]
    assert link["profileTypeId"] == "wall:wall:nanoseconds:wall:nanoseconds"


def validate(configuration: dict[str, Any], folder: Path, *gates: str) -> subprocess.CompletedProcess[str]:
    """What the real Collector says of a configuration."""
    file = folder / "config.json"  # which YAML includes
    file.write_text(json.dumps(configuration), encoding="utf-8")
    command = [program(), "validate", "--config", str(file), *gates]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def without_contrib(configuration: dict[str, Any]) -> dict[str, Any]:
    """A configuration in which exporters of the contrib distribution are replaced by one that the tests' build has."""
    exporters = configuration["exporters"]
    for name in [name for name in exporters if name.startswith("elasticsearch/")]:
        exporters[name.replace("elasticsearch", "debug")] = {}
        del exporters[name]
    for pipeline in configuration["service"]["pipelines"].values():
        pipeline["exporters"] = [name.replace("elasticsearch", "debug") for name in pipeline["exporters"]]
    return configuration


@pytest.mark.parametrize("folder", ["collector", "elastic"])
def test_the_collector_accepts_its_configuration(folder: str, tmp_path: Path) -> None:
    """With the gate that the compose file opens, and not without."""
    command = load(EXAMPLES / folder / "docker-compose.yml")["services"]["collector"]["command"]
    assert GATES in command
    configuration = without_contrib(load(EXAMPLES / folder / "config.yaml"))
    accepted = validate(configuration, tmp_path, GATES)
    assert accepted.returncode == 0, accepted.stderr
    assert "service.profilesSupport" in validate(configuration, tmp_path).stderr


def test_the_collector_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    """So that its acceptance means something."""
    configuration = load(EXAMPLES / "collector" / "config.yaml")
    configuration["service"]["pipelines"]["profiles"]["processors"] = ["batch"]
    assert validate(configuration, tmp_path, GATES).returncode != 0
