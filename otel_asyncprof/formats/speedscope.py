"""speedscope's own format: for each process one profile of all its wall or CPU time, and one for each state.

The format has no labels. The state, on which everything depends here, is told by the choice of the profile.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .collapsed import value_of
from .process_profile import ProcessProfile, process_profiles
from .stack_sample import Frame, StackSample

if TYPE_CHECKING:
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_EXPORTER = "otel-asyncprof"


def to_speedscope(profiles: "Iterable[ProfilesData]", mode: str = "wall") -> bytes:
    """One file for all processes."""
    frames: dict[Frame, int] = {}
    processes = process_profiles(profiles)
    made = [profile for process in processes for profile in _profiles_of(process, mode, frames)]
    document = {
        "$schema": SCHEMA,
        "exporter": _EXPORTER,
        "name": ", ".join(process.name for process in processes) or "empty",
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(frame) for frame in frames]},
        "profiles": made,
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _profiles_of(process: ProcessProfile, mode: str, frames: dict[Frame, int]) -> list[dict[str, Any]]:
    samples = [timed.sample for timed in process.samples]
    states = sorted({sample.state for sample in samples if sample.state})
    chosen = [(mode, samples)]
    if mode == "wall":
        chosen += [(f"{mode}, {state}", [sample for sample in samples if sample.state == state]) for state in states]
    return [_profile(f"{process.name}: {name}", of, mode, frames) for name, of in chosen]


def _profile(name: str, samples: list[StackSample], mode: str, frames: dict[Frame, int]) -> dict[str, Any]:
    weighted = [(sample.frames, value_of(sample, mode)) for sample in samples]
    weighted = [(stack, weight) for stack, weight in weighted if weight and stack]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weight for _, weight in weighted),
        "samples": [[frames.setdefault(frame, len(frames)) for frame in stack] for stack, _ in weighted],
        "weights": [weight for _, weight in weighted],
    }


def _frame(frame: Frame) -> dict[str, Any]:
    found: dict[str, Any] = {"name": frame.function}
    if frame.file:
        found["file"] = frame.file
    if frame.line > 0:
        found["line"] = frame.line
    return found
