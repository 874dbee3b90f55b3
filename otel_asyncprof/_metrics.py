"""The profiler's own health as OpenTelemetry metrics: observable instruments, read when somebody collects."""

import logging
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from ._version import __version__
from .export._base import ProfileExporter
from .export._periodic import PeriodicExport

if TYPE_CHECKING:
    from ._native import Stats

    class ProfilerStats(Stats):
        """The counters of the sampler since the start, and what follows from them."""

        rate: float  # ticks per second
        sampler_share: float  # of one core


_logger = logging.getLogger(__name__)

SCOPE = "otel_asyncprof"
_NONE: Mapping[str, str] = {}


def with_derived(stats: "Stats") -> "ProfilerStats":
    """The sampler's counters with the rate that it has achieved and its share of one core."""
    elapsed = stats["elapsed_ns"]
    return {
        **stats,
        "rate": stats["ticks"] * 1e9 / elapsed if elapsed else 0.0,
        "sampler_share": stats["sampler_cpu_ns"] / elapsed if elapsed else 0.0,
    }


@dataclass(frozen=True)
class Lost:
    """What is counted for longer than one run: by the sampler in the process, by an exporter in its life."""

    drops: Mapping[str, int]
    requests: int
    profiles: int

    @classmethod
    def until_now(cls, stats: "Stats", exporter: ProfileExporter) -> Self:
        """Reads the counts; only OTLP exporters have some."""
        requests, profiles = (getattr(exporter, name, 0) for name in ("dropped_requests", "rejected_profiles"))
        return cls(stats["drops"], requests, profiles)

    def since(self, before: "Lost") -> "Lost":
        """The difference."""
        drops = {reason: count - before.drops.get(reason, 0) for reason, count in self.drops.items()}
        return Lost(drops, self.requests - before.requests, self.profiles - before.profiles)


@dataclass(frozen=True)
class ProfilerStatus:
    """What the profiler is doing and what became of the profiles."""

    running: bool
    exported_intervals: int
    failed_intervals: int
    exporter: str | None
    last_error: str
    stats: "ProfilerStats | None"


@dataclass(frozen=True)
class Health:
    """What is known of one run of the profiler."""

    stats: "ProfilerStats"
    exported_intervals: int
    failed_intervals: int
    lost: Lost

    @classmethod
    def of_run(cls, stats: "Stats", periodic: PeriodicExport, exporter: ProfileExporter, before: Lost) -> Self:
        """Puts together what is counted in different places."""
        lost = Lost.until_now(stats, exporter).since(before)
        return cls(with_derived(stats), periodic.exported_intervals, periodic.failed_intervals, lost)


_Values = Iterable[tuple[float, Mapping[str, str]]]


@dataclass(frozen=True)
class _Instrument:
    name: str
    unit: str
    description: str
    read: Callable[[Health], _Values]
    is_counter: bool = True


def _cpu_time(health: Health) -> _Values:
    yield health.stats["sampler_cpu_ns"] / 1e9, {"component": "sampler"}
    yield health.stats["export_cpu_ns"] / 1e9, {"component": "export"}


def _intervals(health: Health) -> _Values:
    yield health.exported_intervals, {"outcome": "exported"}
    yield health.failed_intervals, {"outcome": "failed"}


INSTRUMENTS = (
    _Instrument(
        "sampler.ticks", "{tick}", "How often the sampler has looked.", lambda health: [(health.stats["ticks"], _NONE)]
    ),
    _Instrument("sampler.samples", "{sample}", "Stacks seen.", lambda health: [(health.stats["samples"], _NONE)]),
    _Instrument(
        "sampler.drops",
        "{drop}",
        "What could not be read or kept, by reason.",
        lambda health: [(count, {"reason": reason}) for reason, count in health.lost.drops.items() if count],
    ),
    _Instrument(
        "sampler.rate",
        "{tick}/s",
        "Ticks per second since the start.",
        lambda health: [(health.stats["rate"], _NONE)],
        is_counter=False,
    ),
    _Instrument(
        "sampler.task_window",
        "{tick}",
        "A suspended task is looked at in one of so many ticks.",
        lambda health: [(health.stats["window"], _NONE)],
        is_counter=False,
    ),
    _Instrument(
        "sampler.visit.duration",
        "s",
        "Cost of a look at one suspended task, smoothed.",
        lambda health: [(health.stats["visit_ns"] / 1e9, _NONE)],
        is_counter=False,
    ),
    _Instrument(
        "sampler.tick.duration",
        "s",
        "Cost of one tick, smoothed.",
        lambda health: [(health.stats["tick_ns"] / 1e9, _NONE)],
        is_counter=False,
    ),
    _Instrument("cpu.time", "s", "CPU time of the profiler's own threads.", _cpu_time),
    _Instrument("export.intervals", "{interval}", "Intervals whose profiles were exported, or were not.", _intervals),
    _Instrument(
        "export.dropped",
        "{request}",
        "Requests that the exporter has given up.",
        lambda health: [(health.lost.requests, _NONE)],
    ),
    _Instrument(
        "export.rejected",
        "{profile}",
        "Profiles that the receiver has rejected.",
        lambda health: [(health.lost.profiles, _NONE)],
    ),
)


@dataclass
class _State:
    """Whose health is told, and to which provider's readers; None: to those of the global provider."""

    read: "weakref.WeakMethod[Callable[[], Health | None]] | None" = None
    provider: "weakref.ref[MeterProvider] | None" = None
    # Counters never fall within a process: what earlier runs have counted.
    before: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)


_state = _State()
_instrumented: "weakref.WeakSet[MeterProvider]" = weakref.WeakSet()


def begin(read: Callable[[], Health | None], provider: MeterProvider | None) -> None:
    """Tells the health of the run that begins; read, a method, is held weakly and gives None when nothing runs."""
    try:
        _state.read = weakref.WeakMethod(read)
        _state.provider = weakref.ref(provider) if provider is not None else None
        target = provider if provider is not None else metrics.get_meter_provider()
        if target not in _instrumented:
            _instrumented.add(target)
            _make_instruments(target, _state.provider)
    except Exception:
        _logger.warning("otel_asyncprof gives no metrics: its instruments could not be made", exc_info=True)


def end(last: Health) -> None:
    """From now on nothing is told; what the run has counted is kept for the next."""
    if _state.read is None:  # told already, by a stop that was interrupted
        return
    _state.read = _state.provider = None
    for instrument in INSTRUMENTS:
        if instrument.is_counter:
            for value, attributes in instrument.read(last):
                key = instrument.name, frozenset(attributes.items())
                _state.before[key] = _state.before.get(key, 0) + value


def after_fork_in_child() -> None:
    """What was counted in the parent is the parent's."""
    _state.before.clear()


def _make_instruments(target: MeterProvider, bound: "weakref.ref[MeterProvider] | None") -> None:
    # A provider that is set later makes the instruments of the API's proxy anew; the second ones of one name are no
    # other than the first, so that the callbacks of all times must find the run of the moment.
    meter = target.get_meter(SCOPE, __version__)
    for instrument in INSTRUMENTS:
        make = meter.create_observable_counter if instrument.is_counter else meter.create_observable_gauge
        name = f"{SCOPE}.{instrument.name}"
        make(name, [_callback(instrument, bound)], unit=instrument.unit, description=instrument.description)


def _callback(
    instrument: _Instrument, bound: "weakref.ref[MeterProvider] | None"
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_options: CallbackOptions) -> list[Observation]:
        read = _state.read() if _state.read is not None else None
        if read is None or _resolve(_state.provider) is not _resolve(bound):
            return []
        health = read()
        if health is None:
            return []
        found = []
        for value, attributes in instrument.read(health):
            before = _state.before.get((instrument.name, frozenset(attributes.items())), 0)
            found.append(Observation(value + before if instrument.is_counter else value, attributes))
        return found

    return observe


def _resolve(provider: "weakref.ref[MeterProvider] | None") -> MeterProvider | None:
    return provider() if provider is not None else metrics.get_meter_provider()
