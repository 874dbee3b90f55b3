"""pprof files: read by protobuf's own classes and by Go's tool, they hold all that was recorded."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from profile_proto import Profile, frames_by_location, labels_of
from recordings import MS, profiles

from otel_asyncprof.formats.pprof import to_pprof
from otel_asyncprof.formats.process_profile import process_profiles
from otel_asyncprof.formats.stack_sample import StackSample

SAMPLES = [timed.sample for process in process_profiles(profiles()) for timed in process.samples]


def decoded(content: bytes) -> Any:
    """The message in a file, which must hold nothing that profile.proto does not know."""
    profile = Profile.FromString(gzip.decompress(content))
    for message in (profile, *profile.sample, *profile.location, *profile.function, *profile.mapping):
        assert len(UnknownFieldSet(message)) == 0
    return profile


def samples_of(profile: Any) -> list[StackSample]:
    """What was recorded, made again from the file alone."""
    frames = frames_by_location(profile)
    found = []
    for sample in profile.sample:
        labels = labels_of(profile, sample)
        assert labels.pop("service") == "shop"
        assert labels.pop("pid") == 4711
        _, cpu_ns, wall_ns = sample.value
        found.append(
            StackSample(
                frames=tuple(frames[number] for number in reversed(sample.location_id)),
                task_name=labels.pop("task", None),
                thread_name=labels.pop("thread", None),
                thread_id=labels.pop("thread id", None),
                state=labels.pop("state", None),
                local_root_name=labels.pop("local root", None),
                trace_id=int(labels.pop("trace_id", "0"), 16),
                span_id=int(labels.pop("span_id", "0"), 16),
                cpu_ns=cpu_ns,
                wall_ns=wall_ns,
                timestamps=(),
            )
        )
        assert labels == {}
    return found


def without_times(sample: StackSample) -> StackSample:
    """pprof has no place for the times of single observations."""
    from dataclasses import replace

    return replace(sample, timestamps=())


@pytest.mark.parametrize("timeline", [True, False])
def test_everything_but_single_times_comes_back_from_pprof(timeline: bool) -> None:
    """Stacks, links, states, tasks, threads, CPU and wall time, of the real encoder's bytes."""
    profile = decoded(to_pprof(profiles(timeline=timeline)))
    assert samples_of(profile) == [without_times(sample) for sample in SAMPLES]


def test_the_head_of_a_pprof_file_says_what_its_values_are() -> None:
    """Types, period, time and the value that is shown first."""
    profile = decoded(to_pprof(profiles(), "cpu"))
    strings = profile.string_table
    types = [(strings[kind.type], strings[kind.unit]) for kind in profile.sample_type]
    assert types == [("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds")]
    assert strings[profile.default_sample_type] == "cpu"
    assert (strings[profile.period_type.type], profile.period) == ("cpu", 10 * MS)
    assert (profile.time_nanos, profile.duration_nanos) == (1_000_000_000, 10_000_000_000)
    assert [strings[comment] for comment in profile.comment] == ["service.name=shop", "process.pid=4711"]
    assert strings[0] == ""
    assert len(set(strings)) == len(strings)
    assert [sample.value[0] for sample in profile.sample] == [1, 1, 8, 1]


def test_gos_pprof_reads_the_file(tmp_path: Path) -> None:
    """The tool for which the format was made."""
    go = shutil.which("go", path="/usr/local/go/bin:/usr/bin:/usr/local/bin")
    if go is None:
        pytest.skip("Go is not installed")
    file = tmp_path / "a.pprof"
    file.write_bytes(to_pprof(profiles()))
    shown = subprocess.run(
        [go, "tool", "pprof", "-raw", file], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=240
    ).stdout
    assert "samples/count cpu/nanoseconds wall/nanoseconds[dflt]" in shown
    assert "8          0   80000000:" in shown
    assert "state:[waiting] task:[Task-2] thread:[MainThread]" in shown
    assert "fetch_lines /app/orders.py:7:0 s=5" in shown
