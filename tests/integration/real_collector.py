"""A real OpenTelemetry Collector, built from its own modules, between an application and a receiver of the tests."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Any, Self

import pytest
from integration.collectors import HttpCollector, closed_port

ROOT = Path(__file__).resolve().parents[2]
READY = "Everything is ready"
START_SECONDS = 30.0
KEPT_LINES = 1000


def program() -> str:
    """The Collector's program. Without one the test is skipped; in CI that is a failure."""
    path = os.environ.get("OTELCOL", "")
    if not path and os.environ.get("CI"):
        pytest.fail("OTELCOL names no Collector; .ci/otelcol builds one")
    if not path:
        pytest.skip("no OpenTelemetry Collector: OTELCOL=$(.ci/otelcol) builds one where there is a Go toolchain")
    return path


class RealCollector:
    """Receives at ``endpoints``; what comes out of its OTLP/HTTP exporter is in ``out``, its own lines in ``log``."""

    def __init__(
        self,
        folder: Path,
        *,
        profiles: bool = True,
        receiver: dict[str, Any] | None = None,
        tls: bool = False,
        protocols: tuple[str, ...] = ("http/protobuf", "grpc"),
    ) -> None:
        self.out = HttpCollector()
        ports = {protocol: closed_port() for protocol in protocols}
        scheme, host = ("https", "localhost") if tls else ("http", "127.0.0.1")
        self.endpoints = {protocol: f"{scheme}://{host}:{port}" for protocol, port in ports.items()}
        self.log: deque[str] = deque(maxlen=KEPT_LINES)
        self._ready = threading.Event()
        settings = {
            "receivers": {
                "otlp": {
                    "protocols": {
                        protocol.partition("/")[0]: {"endpoint": f"{host}:{port}", **(receiver or {})}
                        for protocol, port in ports.items()
                    }
                }
            },
            "processors": {
                "batch": {"timeout": "100ms"},
                "memory_limiter": {"check_interval": "1s", "limit_mib": 512},
            },
            "exporters": {
                "otlp_http": {"endpoint": self.out.endpoint, "compression": "none"},
                "debug": {"verbosity": "detailed"},
            },
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {
                    "traces": {
                        "receivers": ["otlp"],
                        "processors": ["memory_limiter", "batch"],
                        "exporters": ["otlp_http", "debug"],
                    },
                }
                | ({"profiles": _PROFILES} if profiles else {}),
            },
        }
        file = folder / "collector.json"  # which YAML includes
        file.write_text(json.dumps(settings), encoding="utf-8")
        gates = ["--feature-gates=+service.profilesSupport"] if profiles else []
        self._process = subprocess.Popen(
            [program(), "--config", str(file), *gates], stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        self.out.__enter__()
        if not self._ready.wait(START_SECONDS) or self._process.poll() is not None:
            self.__exit__()
            pytest.fail("the Collector does not start:\n" + "\n".join(self.log))
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()
        self.out.__exit__()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line.rstrip())
            if READY in line:
                self._ready.set()
        self._ready.set()  # it has ended


_PROFILES = {"receivers": ["otlp"], "processors": ["memory_limiter"], "exporters": ["otlp_http", "debug"]}
