"""Environments for the peers, made from PyPI and kept for the next run."""

import importlib.metadata
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from peers.profilers import HERE, Profiler

INSTALL_SECONDS = 600
CHECK_SECONDS = 60


@dataclass(frozen=True)
class Environment:
    """Where a profiler can be run; without a Python, why not."""

    python: Path | None
    version: str = ""
    reason: str = ""


def prepare(profiler: Profiler, cache: Path) -> Environment:
    """Installs what the profiler needs, unless that is done, and checks that it runs on this machine."""
    if profiler.environment == HERE:
        version = importlib.metadata.version("otel-asyncprof") if profiler.name == "ours" else ""
        return Environment(Path(sys.executable), version)
    folder = cache / profiler.environment
    marker, reasons = folder / "installed", []
    for requirement in profiler.requirements:
        if not (marker.exists() and marker.read_text() == requirement):
            reason = _install(profiler, requirement, folder)
            if reason:
                reasons.append(reason)
                continue
        reason = _check(profiler, folder)
        if not reason:
            marker.write_text(requirement)
            return Environment(folder / "bin" / "python", _version(profiler, folder))
        reasons.append(f"{requirement} {_version(profiler, folder)} does not run: {reason}")
    return Environment(None, reason="; ".join(reasons))


def _install(profiler: Profiler, requirement: str, folder: Path) -> str:
    wanted = [requirement]
    if profiler.with_opentelemetry:
        wanted += [f"{name}=={importlib.metadata.version(name)}" for name in ("opentelemetry-api", "opentelemetry-sdk")]
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
    for command in ([str(base), "-m", "venv", str(folder)], [*pip, *wanted]):
        reason = _run(command, INSTALL_SECONDS)
        if reason:
            return f"{requirement} does not install: {reason}"
    return ""


def _check(profiler: Profiler, folder: Path) -> str:
    return _run([str(folder / "bin" / profiler.check[0]), *profiler.check[1:]], CHECK_SECONDS)


def _version(profiler: Profiler, folder: Path) -> str:
    code = f"import importlib.metadata as m; print(m.version({profiler.distribution!r}))"
    found = subprocess.run([folder / "bin" / "python", "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def _run(command: list[str], seconds: float) -> str:
    """Why a command failed: its last line; nothing when it did not."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (result.stderr or result.stdout).strip().splitlines()
    return "" if result.returncode == 0 else (lines[-1] if lines else f"exit status {result.returncode}")
