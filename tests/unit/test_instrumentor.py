"""The entry points: the instrumentor, the exporters, the variables."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from opentelemetry.sdk.trace import TracerProvider

from otel_asyncprof import ConfigurationError, ExporterUnavailable, ProfilerConfig, environment_variables
from otel_asyncprof._config import OPTIONS
from otel_asyncprof.export import ProfileExporter, factory, otlp_grpc, otlp_http
from otel_asyncprof.export.console import ConsoleProfileExporter
from otel_asyncprof.export.file import FileProfileExporter
from otel_asyncprof.instrumentor import AsyncProfInstrumentor


@pytest.fixture
def instrumentor(native, monkeypatch, tmp_path):
    """The singleton, with an exporter that needs no network; afterwards it is off."""
    monkeypatch.setenv("OTEL_PROFILES_EXPORTER", "file")
    monkeypatch.setenv("OTEL_ASYNCPROF_FILE", str(tmp_path / "profiles"))
    made = AsyncProfInstrumentor()
    yield made
    if made.is_instrumented_by_opentelemetry:
        made.uninstrument()


def test_instrument_starts_and_uninstrument_stops(instrumentor, native, tmp_path):
    """What was seen is exported; what was changed is put back."""
    instrumentor.instrument()
    assert instrumentor.profiler.is_running
    instrumentor.uninstrument()
    assert instrumentor.profiler is None
    assert (tmp_path / "profiles").read_bytes() == b"\x09request 1"
    assert native.calls[-1] == "uninstall"


def test_options_come_as_keywords(instrumentor, native):
    """As declarative configuration passes them; a provider may come along."""
    provider = TracerProvider()
    instrumentor.instrument(rate=20, tracer_provider=provider, meter_provider=None)
    assert native.started_with["rate"] == 20
    assert instrumentor.profiler._tracer_provider is provider


def test_a_bad_option_never_stops_the_application(instrumentor, native, warnings_logged):
    """It is left out with one line."""
    instrumentor.instrument(rate=0, colour="red")
    assert native.started_with["rate"] == 100
    assert len(warnings_logged()) == 2


def test_a_failure_never_stops_the_application(instrumentor, native, monkeypatch, warnings_logged):
    """An exception would keep other instrumentations from loading."""
    monkeypatch.setattr(ProfilerConfig, "from_options", None)
    instrumentor.instrument()
    assert warnings_logged() == ["otel_asyncprof does not profile this process: TypeError"]


def test_declarative_configuration_reaches_the_profiler(instrumentor, native, monkeypatch, warnings_logged):
    """What it does not say is left to the variables; a bad option costs one line, as elsewhere."""
    from opentelemetry.configuration.instrumentation import configure_instrumentation
    from opentelemetry.configuration.models import ExperimentalInstrumentation

    monkeypatch.setenv("OTEL_ASYNCPROF_MAX_FRAMES", "64")
    options = {"rate": 30, "exporter": "console", "timeline": "perhaps", "colour": "red"}
    configure_instrumentation(ExperimentalInstrumentation(python={"asyncprof": options}))
    assert (native.started_with["rate"], native.started_with["max_frames"]) == (30, 64)
    assert len(warnings_logged()) == 2
    assert isinstance(instrumentor.profiler._exporter, ConsoleProfileExporter)


def test_the_instrumentor_is_found_by_its_entry_point():
    """Where opentelemetry-instrument looks."""
    (found,) = entry_points(group="opentelemetry_instrumentor", name="asyncprof")
    assert found.load() is AsyncProfInstrumentor


def test_every_exporter_is_found_by_its_entry_point():
    """And none takes an argument it must have."""
    made = {each.name: each.load()() for each in entry_points(group="opentelemetry_profiles_exporter")}
    kinds = {name: type(exporter) for name, exporter in made.items()}
    for exporter in made.values():
        exporter.shutdown()
    assert kinds == {
        "otlp": otlp_http.OTLPProfileExporter,
        "otlp_proto_http": otlp_http.OTLPProfileExporter,
        "otlp_proto_grpc": otlp_grpc.OTLPProfileExporter,
        "console": ConsoleProfileExporter,
        "file": FileProfileExporter,
    }


@pytest.mark.parametrize(
    ("name", "protocol", "kind"),
    [
        ("otlp", "", otlp_http.OTLPProfileExporter),
        ("otlp", "grpc", otlp_grpc.OTLPProfileExporter),
        ("otlp_proto_http", "grpc", otlp_http.OTLPProfileExporter),
        ("otlp_proto_grpc", "", otlp_grpc.OTLPProfileExporter),
        ("console", "", ConsoleProfileExporter),
        ("file", "", FileProfileExporter),
    ],
)
def test_the_configuration_names_the_exporter(name, protocol, kind, monkeypatch):
    """The protocol decides for otlp alone."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    exporter = factory.make_exporter(ProfilerConfig(exporter=name))
    exporter.shutdown()
    assert type(exporter) is kind


class Entry:
    """An entry point of somebody else."""

    def __init__(self, make):
        self.load = lambda: make


class Theirs(ProfileExporter):
    """An exporter of somebody else."""

    def export(self, requests):
        raise NotImplementedError


def test_an_exporter_of_somebody_else_is_made(monkeypatch):
    """By its entry point's name."""
    monkeypatch.setattr("otel_asyncprof._config.entry_points", lambda **_: [Entry(Theirs)])
    monkeypatch.setattr(factory, "entry_points", lambda **_: [Entry(Theirs)])
    assert type(factory.make_exporter(ProfilerConfig(exporter="Theirs"))) is Theirs


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: 1 / 0, "the exporter 'x' could not be made: ZeroDivisionError"),
        (lambda: 5, "the entry point 'x' made no ProfileExporter"),
    ],
)
def test_an_exporter_of_somebody_else_that_fails_is_a_refusal(monkeypatch, make, reason):
    """In one line."""
    monkeypatch.setattr("otel_asyncprof._config.entry_points", lambda **_: [Entry(make)])
    monkeypatch.setattr(factory, "entry_points", lambda **_: [Entry(make)])
    with pytest.raises(ExporterUnavailable, match=rf"^{reason}$"):
        factory.make_exporter(ProfilerConfig(exporter="x"))


def test_an_exporter_that_nobody_has_is_a_bad_option():
    """Told before anything starts."""
    with pytest.raises(ConfigurationError, match=r"^exporter='zipkin' is not allowed"):
        ProfilerConfig(exporter="zipkin")


def test_every_variable_is_a_constant_of_its_own_name():
    """opentelemetry-instrument makes a flag of each; every option has its variable there."""
    names = {name for name in dir(environment_variables) if name.startswith("OTEL_")}
    assert {getattr(environment_variables, name) for name in names} == names
    assert {option.variable for option in OPTIONS.values()} <= names


def test_the_flags_do_not_collide_with_those_of_others():
    """argparse refuses two flags of one name, and then no application would start."""
    command = "from opentelemetry.instrumentation.auto_instrumentation import run; run()"
    done = subprocess.run([sys.executable, "-c", command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--asyncprof_rate" in done.stdout
    assert "--profiles_exporter" in done.stdout


def test_an_exporter_may_be_an_object(instrumentor, native):
    """As for Profiler."""
    exporter = ConsoleProfileExporter()
    instrumentor.instrument(exporter=exporter)
    assert instrumentor.profiler._exporter is exporter
