"""What `otel-asyncprof run` tells the processes that it starts: one variable of their environment, as JSON."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

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
