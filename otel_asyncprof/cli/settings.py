"""What `otel-asyncprof run` tells the processes that it starts: one variable of their environment, as JSON."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._config import ProfilerConfig

VARIABLE = "OTEL_ASYNCPROF_RUN"
BOOTSTRAP = Path(__file__).with_name("_bootstrap")


@dataclass(frozen=True)
class RunSettings:
    """How a process is to be recorded."""

    folder: str  # that it writes to
    subprocesses: bool
    instrument: bool
    otlp: bool  # whether it also sends what it records
    running_only: bool
    duration: float  # seconds; 0 is until its end
    python_path: str | None  # PYTHONPATH as it was

    def to_text(self) -> str:
        """What stands in the variable."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> "RunSettings":
        """The settings that stand in the variable."""
        return cls(**json.loads(text))

    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to be recorded."""
        path = [str(BOOTSTRAP), *([self.python_path] if self.python_path else [])]
        return {VARIABLE: self.to_text(), "PYTHONPATH": os.pathsep.join(path)}

    def leave_environment(self) -> None:
        """Takes it out again, so that processes which this one starts are not recorded."""
        os.environ.pop(VARIABLE, None)
        if self.python_path is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = self.python_path


def configuration(environment: Mapping[str, str], *, running_only: bool, otlp: bool) -> "ProfilerConfig":
    """What the environment says; where it says nothing, all that a recording can hold."""
    from .._config import OPTIONS, SAMPLE_ATTRIBUTES, ProfilerConfig

    options: dict[str, Any] = {}
    if not environment.get(OPTIONS["timeline"].variable):
        options["timeline"] = True
    if running_only or not environment.get(OPTIONS["sample_attributes"].variable):  # the state among them
        options["sample_attributes"] = SAMPLE_ATTRIBUTES
    if not otlp:
        options["exporter"] = "otlp"  # is not made; "none" would switch the profiler off
    return ProfilerConfig.from_env(environment, **options)
