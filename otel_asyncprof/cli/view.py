"""The viewer beside a program that `otel-asyncprof run --view` has started."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Self

from .messages import CANNOT_START, Failure, say
from .viewer_options import VARIABLES, require_viewer

# What would lead the program's data past the viewer.
_ASIDE = ("PROFILES_EXPORTER", "TRACES_EXPORTER", "EXPORTER_OTLP_HEADERS")
_OF_SIGNAL = ("ENDPOINT", "PROTOCOL", "HEADERS", "COMPRESSION", "CERTIFICATE", "INSECURE")
STOP_SECONDS = 10.0


class ViewerBeside:
    """A viewer on free ports in a process of its own, from `with` to the end of its block."""

    def __init__(self, *, quiet: bool, database: str | None = None) -> None:
        require_viewer()
        ports = [argument for name in ("grpc", "http", "ui") for argument in (f"--{name}-port", "0")]
        options = ["--db", database or ":memory:", "--ready-json", "--until-stdin-ends", "--quiet"]
        # Nobody else is meant to send here, so neither address nor token come from the environment.
        aside = {f"{VARIABLES}{name}" for name in ("HOST", "TOKEN")}
        # A session of its own: Ctrl-C is meant for the program. The end of the pipe ends it, however this process ends.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "otel_asyncprof", "serve", *ports, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name not in aside},
            start_new_session=True,
        )
        self._quiet = quiet
        self.page = self.endpoint = ""

    def __enter__(self) -> Self:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failure("the viewer does not start", self._process.wait() or CANNOT_START)
        addresses = json.loads(line)
        self.page, self.endpoint = addresses["page"], addresses["http"]
        if not self._quiet:
            say(f"page     {self.page}")
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def stay(self) -> None:
        """Lets the user look until Ctrl-C."""
        say(f"page     {self.page}      (Ctrl-C ends)")
        with contextlib.suppress(KeyboardInterrupt):
            self._process.wait()

    def environment(self, before: Mapping[str, str]) -> dict[str, str]:
        """An environment in which everything is sent to the viewer, soon."""
        left_out = {f"OTEL_{name}" for name in _ASIDE}
        left_out |= {f"OTEL_EXPORTER_OTLP_{of}_{name}" for of in ("TRACES", "PROFILES") for name in _OF_SIGNAL}
        kept = {name: value for name, value in before.items() if name not in left_out}
        soon = {"OTEL_ASYNCPROF_INTERVAL": "2s", "OTEL_BSP_SCHEDULE_DELAY": "1000"}
        here = {"OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        return {**soon, **kept, **here, "OTEL_ASYNCPROF_TIMELINE": "true"}
