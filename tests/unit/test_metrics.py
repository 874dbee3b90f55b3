"""The profiler's health as metrics, as a reader of the SDK sees it."""

import gc
import os
import weakref
from collections.abc import Iterator
from typing import Any

import opentelemetry.metrics._internal as api
import pytest
from opentelemetry.metrics import MeterProvider as ApiProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.util._once import Once

from otel_asyncprof import Profiler, ProfilerConfig, _metrics, _profiler
from otel_asyncprof._version import __version__
from otel_asyncprof.export import InMemoryProfileExporter, ProfileExporter, ProfileExportResult
from otel_asyncprof.instrumentor import AsyncProfInstrumentor

FIRST_RUN = {
    "otel_asyncprof.sampler.ticks": {"": 50},
    "otel_asyncprof.sampler.samples": {"": 200},
    "otel_asyncprof.sampler.drops": {"too_deep": 2},
    "otel_asyncprof.sampler.rate": {"": 100.0},
    "otel_asyncprof.sampler.task_window": {"": 4.0},
    "otel_asyncprof.sampler.visit.duration": {"": 8e-7},
    "otel_asyncprof.sampler.tick.duration": {"": 8e-5},
    "otel_asyncprof.cpu.time": {"sampler": 0.004, "export": 0.0},
    "otel_asyncprof.export.intervals": {"exported": 0, "failed": 0},
    "otel_asyncprof.export.dropped": {"": 0},
    "otel_asyncprof.export.rejected": {"": 0},
}


@pytest.fixture(autouse=True)
def counts_of_its_own(native: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was counted before; the sampler drops two stacks as soon as it runs."""
    monkeypatch.setattr(_metrics, "_state", _metrics._State())
    drops = {"too_deep": 3, "late_tick": 0}
    stats, start = native.stats, native.start

    def start_and_drop(**options: Any) -> None:
        start(**options)
        drops["too_deep"] += 2

    native.start = start_and_drop
    native.stats = lambda: stats() | {"drops": dict(drops)}


@pytest.fixture
def reader() -> InMemoryMetricReader:
    """What collects."""
    return InMemoryMetricReader()


@pytest.fixture
def meters(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    """A provider that is not the global one."""
    provider = MeterProvider([reader])
    yield provider
    provider.shutdown()


@pytest.fixture
def no_global_meters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API as it is in a new process."""
    monkeypatch.setattr(api, "_METER_PROVIDER", None)
    monkeypatch.setattr(api, "_METER_PROVIDER_SET_ONCE", Once())
    monkeypatch.setattr(api, "_PROXY_METER_PROVIDER", api._ProxyMeterProvider())


def profiler(meters: ApiProvider | None, exporter: ProfileExporter | None = None) -> Profiler:
    """A profiler whose export thread never wakes by itself."""
    given = exporter or InMemoryProfileExporter()
    return Profiler(ProfilerConfig(interval=3600), exporter=given, meter_provider=meters)


def collected(reader: InMemoryMetricReader) -> dict[str, dict[str, float]]:
    """Each metric's values by their one attribute."""
    data = reader.get_metrics_data()
    found: dict[str, dict[str, float]] = {}
    for resource in data.resource_metrics if data else []:
        for scope in resource.scope_metrics:
            assert (scope.scope.name, scope.scope.version) == ("otel_asyncprof", __version__)
            for metric in scope.metrics:
                points: Any = metric.data.data_points
                found[metric.name] = {"".join(map(str, point.attributes.values())): point.value for point in points}
    return found


def test_a_reader_sees_the_health_of_the_running_profiler(meters: MeterProvider, reader: InMemoryMetricReader) -> None:
    """Drops are those of this run; without export CPU time from the sampler, there is no such point."""
    assert profiler(meters).start()
    assert collected(reader) == FIRST_RUN


def test_the_cpu_time_of_the_export_thread_is_a_point_of_its_own(
    native: Any, meters: MeterProvider, reader: InMemoryMetricReader
) -> None:
    """That of the sampler goes on beside it."""
    stats = native.stats
    native.stats = lambda: stats() | {"export_cpu_ns": 7_000_000}
    assert profiler(meters).start()
    assert collected(reader)["otel_asyncprof.cpu.time"] == {"sampler": 0.004, "export": 0.007}


def test_units_and_kinds_are_those_of_the_conventions(meters: MeterProvider, reader: InMemoryMetricReader) -> None:
    """Sums are monotonic; what may fall is a gauge."""
    assert profiler(meters).start()
    data = reader.get_metrics_data()
    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    kinds = {each.name.removeprefix("otel_asyncprof."): (type(each.data).__name__, each.unit) for each in scope.metrics}
    assert kinds == {
        "sampler.ticks": ("Sum", "{tick}"),
        "sampler.samples": ("Sum", "{sample}"),
        "sampler.drops": ("Sum", "{drop}"),
        "sampler.rate": ("Gauge", "{tick}/s"),
        "sampler.task_window": ("Gauge", "{tick}"),
        "sampler.visit.duration": ("Gauge", "s"),
        "sampler.tick.duration": ("Gauge", "s"),
        "cpu.time": ("Sum", "s"),
        "export.intervals": ("Sum", "{interval}"),
        "export.dropped": ("Sum", "{request}"),
        "export.rejected": ("Sum", "{profile}"),
    }


def test_exports_are_counted_with_their_outcome(meters: MeterProvider, reader: InMemoryMetricReader) -> None:
    """And what an exporter has lost in this run, not before."""

    class Losing(ProfileExporter):
        dropped_requests, rejected_profiles = 5, 6

        def export(self, requests: Any) -> ProfileExportResult:
            self.dropped_requests += 1
            self.rejected_profiles += 2
            return ProfileExportResult.FAILURE if self.dropped_requests == 6 else ProfileExportResult.SUCCESS

    running = profiler(meters, Losing())
    running.start()
    assert [running.force_flush(), running.force_flush()] == [False, True]
    found = collected(reader)
    assert found["otel_asyncprof.export.intervals"] == {"exported": 1, "failed": 1}
    assert found["otel_asyncprof.export.dropped"] == {"": 2}
    assert found["otel_asyncprof.export.rejected"] == {"": 4}


def test_nothing_is_told_after_stop(meters: MeterProvider, reader: InMemoryMetricReader) -> None:
    """Nor before a start."""
    stopped = profiler(meters)
    assert collected(reader) == {}
    stopped.start()
    stopped.stop()
    assert collected(reader) == {}


def test_a_second_run_counts_on_with_the_same_instruments(
    meters: MeterProvider, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    """Counters do not fall, nothing is told twice, and nothing is warned about."""
    for _ in range(2):
        again = profiler(meters)
        again.start()
        again.stop()
    profiler(meters).start()
    found = collected(reader)
    assert found["otel_asyncprof.sampler.ticks"] == {"": 150}
    assert found["otel_asyncprof.sampler.drops"] == {"too_deep": 6}
    assert found["otel_asyncprof.export.intervals"] == {"exported": 2, "failed": 0}
    assert found["otel_asyncprof.sampler.rate"] == {"": 100.0}
    assert [record.getMessage() for record in caplog.records] == []


def test_a_stopped_profiler_is_not_kept_alive(meters: MeterProvider) -> None:
    """Nor one that was given up while it ran, once its threads are gone."""
    stopped = profiler(meters)
    stopped.start()
    stopped.shutdown()
    reference = weakref.ref(stopped)
    del stopped
    gc.collect()
    assert reference() is None


@pytest.mark.usefixtures("no_global_meters")
def test_a_global_provider_that_is_set_late_gets_the_metrics(
    meters: MeterProvider, reader: InMemoryMetricReader, caplog: pytest.LogCaptureFixture
) -> None:
    """Also in the next run, which finds it already set."""
    first = profiler(None)
    first.start()
    api.set_meter_provider(meters)
    assert collected(reader) == FIRST_RUN
    first.stop()
    profiler(None).start()
    assert collected(reader)["otel_asyncprof.sampler.ticks"] == {"": 100}
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.usefixtures("no_global_meters")
def test_a_given_provider_alone_gets_the_metrics(meters: MeterProvider, reader: InMemoryMetricReader) -> None:
    """Neither the global one nor one that was given to an earlier profiler."""
    other = InMemoryMetricReader()
    others = MeterProvider([other])
    api.set_meter_provider(others)
    for given in (None, meters):
        running = profiler(given)
        running.start()
        assert (collected(reader) != {}, collected(other) != {}) == (given is meters, given is None)
        running.stop()
    others.shutdown()


def test_the_instrumentor_hands_the_provider_on(
    meters: MeterProvider, reader: InMemoryMetricReader, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """As every instrumentor does."""
    monkeypatch.setenv("OTEL_PROFILES_EXPORTER", "file")
    monkeypatch.setenv("OTEL_ASYNCPROF_FILE", str(tmp_path / "profiles"))
    instrumentor = AsyncProfInstrumentor()
    instrumentor.instrument(meter_provider=meters)
    assert collected(reader) == FIRST_RUN
    instrumentor.uninstrument()


def test_a_provider_that_fails_costs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """The profiler runs."""

    class Broken(ApiProvider):
        def get_meter(self, *arguments: Any, **named: Any) -> Any:
            raise RuntimeError("no")

    assert profiler(Broken()).start()
    assert [record.getMessage() for record in caplog.records] == [
        "otel_asyncprof gives no metrics: its instruments could not be made"
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_tells_its_own_counts(meters: MeterProvider, reader: InMemoryMetricReader) -> None:
    """Not what the parent has counted before, in earlier runs."""
    earlier = profiler(meters)
    earlier.start()
    earlier.stop()
    running = profiler(meters)
    running.start()
    assert collected(reader)["otel_asyncprof.sampler.ticks"] == {"": 100}
    child = os.fork()
    if child == 0:
        ok = False
        try:
            ok = running.is_running and collected(reader) == FIRST_RUN
        finally:
            os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert collected(reader)["otel_asyncprof.sampler.ticks"] == {"": 100}


def test_stats_say_rate_and_share(native: Any) -> None:
    """Zero before the first run."""
    stats = profiler(None).stats()
    assert stats is not None
    assert (stats["rate"], stats["sampler_share"]) == (100.0, 0.008)
    base = native.stats()
    native.stats = lambda: base | {"elapsed_ns": 0}
    idle = profiler(None).stats()
    assert idle is not None
    assert (idle["rate"], idle["sampler_share"]) == (0.0, 0.0)
    assert _profiler._active is None or _profiler._active() is None
