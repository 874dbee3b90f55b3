"""Options: defaults, variables, bad values, precedence."""

import dataclasses

import pytest

from otel_asyncprof import ConfigurationError, ProfilerConfig
from otel_asyncprof._config import OPTIONS

DEFAULTS = {
    "enabled": True,
    "exporter": "otlp",
    "rate": 100,
    "cpu_budget": 0.01,
    "interval": 10.0,
    "max_frames": 128,
    "link": "span",
    "link_unsampled": False,
    "loop_frames": False,
    "sample_attributes": ("thread.name", "asyncprof.state"),
    "timeline": False,
    "slow_span_threshold": 100.0,
    "caller_kinds": ("client",),
    "exit_signals": True,
    "file": "asyncprof.otlp",
    "profile_id": True,
    "thread_context": False,
    # None: the exporter asks the variables, which have others to fall back on.
    "otlp_protocol": None,
    "otlp_endpoint": None,
    "otlp_headers": None,
    "otlp_timeout": None,
    "otlp_compression": None,
    "otlp_certificate": None,
    "otlp_client_key": None,
    "otlp_client_certificate": None,
    "otlp_insecure": None,
}
READ_HERE = {option.variable for option in OPTIONS.values() if not option.read_by_exporter}

GOOD = [
    ("OTEL_ASYNCPROF_ENABLED", "false", "enabled", False),
    ("OTEL_ASYNCPROF_ENABLED", " True ", "enabled", True),
    ("OTEL_PROFILES_EXPORTER", "Console", "exporter", "console"),
    ("OTEL_ASYNCPROF_RATE", "1", "rate", 1),
    ("OTEL_ASYNCPROF_RATE", "1000", "rate", 1000),
    ("OTEL_ASYNCPROF_CPU_BUDGET", "0.05", "cpu_budget", 0.05),
    ("OTEL_ASYNCPROF_INTERVAL", "2.5", "interval", 2.5),
    ("OTEL_ASYNCPROF_INTERVAL", "500ms", "interval", 0.5),
    ("OTEL_ASYNCPROF_INTERVAL", "1 s", "interval", 1.0),
    ("OTEL_ASYNCPROF_MAX_FRAMES", "512", "max_frames", 512),
    ("OTEL_ASYNCPROF_LINK", "local_root", "link", "local_root"),
    ("OTEL_ASYNCPROF_LINK_UNSAMPLED", "1", "link_unsampled", True),
    ("OTEL_ASYNCPROF_LOOP_FRAMES", "yes", "loop_frames", True),
    (
        "OTEL_ASYNCPROF_SAMPLE_ATTRIBUTES",
        "asyncio.task.name, thread.name,",
        "sample_attributes",
        ("thread.name", "asyncio.task.name"),
    ),
    ("OTEL_ASYNCPROF_TIMELINE", "on", "timeline", True),
    ("OTEL_ASYNCPROF_SLOW_SPAN_THRESHOLD", "50", "slow_span_threshold", 50.0),
    ("OTEL_ASYNCPROF_SLOW_SPAN_THRESHOLD", "1.5s", "slow_span_threshold", 1500.0),
    ("OTEL_ASYNCPROF_EXIT_SIGNALS", "no", "exit_signals", False),
    ("OTEL_ASYNCPROF_CALLER_KINDS", "server,client", "caller_kinds", ("client", "server")),
    ("OTEL_ASYNCPROF_FILE", "/tmp/x.otlp", "file", "/tmp/x.otlp"),
    ("OTEL_ASYNCPROF_PROFILE_ID", "false", "profile_id", False),
    ("OTEL_ASYNCPROF_THREAD_CONTEXT", "true", "thread_context", True),
]

BAD = [
    ("OTEL_ASYNCPROF_ENABLED", "maybe"),
    ("OTEL_PROFILES_EXPORTER", "zipkin"),
    ("OTEL_PROFILES_EXPORTER", "otlp,console"),
    ("OTEL_ASYNCPROF_RATE", "0"),
    ("OTEL_ASYNCPROF_RATE", "1001"),
    ("OTEL_ASYNCPROF_RATE", "10.5"),
    ("OTEL_ASYNCPROF_RATE", "fast"),
    ("OTEL_ASYNCPROF_CPU_BUDGET", "2"),
    ("OTEL_ASYNCPROF_CPU_BUDGET", "nan"),
    ("OTEL_ASYNCPROF_INTERVAL", "0"),
    ("OTEL_ASYNCPROF_INTERVAL", "inf"),
    ("OTEL_ASYNCPROF_INTERVAL", "10 minutes"),
    ("OTEL_ASYNCPROF_MAX_FRAMES", "513"),
    ("OTEL_ASYNCPROF_LINK", "root"),
    ("OTEL_ASYNCPROF_LINK_UNSAMPLED", "2"),
    ("OTEL_ASYNCPROF_LOOP_FRAMES", "-"),
    ("OTEL_ASYNCPROF_SAMPLE_ATTRIBUTES", "thread.name,thread.color"),
    ("OTEL_ASYNCPROF_TIMELINE", "t"),
    ("OTEL_ASYNCPROF_SLOW_SPAN_THRESHOLD", "-1"),
    ("OTEL_ASYNCPROF_CALLER_KINDS", "database"),
    ("OTEL_ASYNCPROF_PROFILE_ID", "perhaps"),
    ("OTEL_ASYNCPROF_THREAD_CONTEXT", "nope"),
]


def test_every_option_has_its_default():
    """The table of the documentation."""
    assert dataclasses.asdict(ProfilerConfig()) == DEFAULTS
    assert dataclasses.asdict(ProfilerConfig.from_env({})) == DEFAULTS


@pytest.mark.parametrize(("variable", "text", "name", "value"), GOOD)
def test_a_variable_sets_its_option_alone(variable, text, name, value, warnings_logged):
    """All others stay at their defaults."""
    config = ProfilerConfig.from_env({variable: text})
    assert dataclasses.asdict(config) == DEFAULTS | {name: value}
    assert warnings_logged() == []


def test_every_option_has_a_good_value_in_this_table():
    """So that no option is left untested."""
    assert {variable for variable, *_ in GOOD} == READ_HERE


@pytest.mark.parametrize(("variable", "text"), BAD)
def test_a_bad_variable_gives_one_line_and_the_default(variable, text, warnings_logged):
    """The line names the variable, the value and what is allowed."""
    assert dataclasses.asdict(ProfilerConfig.from_env({variable: text})) == DEFAULTS
    allowed = next(option.allowed for option in OPTIONS.values() if option.variable == variable)
    assert warnings_logged() == [f"{variable}={text!r} is not allowed (allowed: {allowed}); the default is used"]


def test_an_empty_variable_is_no_value(warnings_logged):
    """As everywhere in OpenTelemetry."""
    empty = {option.variable: " " for option in OPTIONS.values()}
    assert dataclasses.asdict(ProfilerConfig.from_env(empty)) == DEFAULTS
    assert warnings_logged() == []


def test_an_argument_wins_over_its_variable():
    """Code, flag, variable, default: in this order."""
    assert ProfilerConfig.from_env({"OTEL_ASYNCPROF_RATE": "50"}, rate=20).rate == 20


@pytest.mark.parametrize(
    ("variables", "enabled"),
    [
        ({"OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_SDK_DISABLED": "TRUE", "OTEL_ASYNCPROF_ENABLED": "true"}, False),
        ({"OTEL_SDK_DISABLED": "false"}, True),
        ({"OTEL_ASYNCPROF_ENABLED": "false"}, False),
    ],
)
def test_either_switch_turns_the_profiler_off(variables, enabled):
    """That of the SDK and our own."""
    assert ProfilerConfig.from_env(variables).enabled is enabled


@pytest.mark.parametrize(
    "options",
    [{"rate": 0}, {"rate": True}, {"rate": "many"}, {"link": "x"}, {"sample_attributes": 5}, {"interval": None}],
)
def test_a_bad_argument_in_code_raises(options):
    """Code can be corrected; it is not guessed at."""
    (name,) = options
    with pytest.raises(ConfigurationError, match=rf"^{name}="):
        ProfilerConfig(**options)


def test_values_from_yaml_become_those_of_python():
    """Declarative configuration brings lists, strings and whole numbers."""
    config = ProfilerConfig(sample_attributes=["thread.id"], interval=5, rate="50", timeline="true")
    assert (config.sample_attributes, config.interval, config.rate, config.timeline) == (("thread.id",), 5.0, 50, True)


def test_unchecked_options_lose_only_the_bad_ones(warnings_logged):
    """One line for each of those."""
    config = ProfilerConfig.from_options({"rate": 50, "link": "x", "colour": 1})
    assert (config.rate, config.link) == (50, "span")
    assert warnings_logged() == [
        "option link='x' is not allowed (allowed: span, local_root); it is left out",
        f"otel_asyncprof has no option 'colour' (it has: {', '.join(OPTIONS)})",
    ]


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("otlp_endpoint", " host:4317 ", "host:4317"),
        ("otlp_headers", "A=1,b=%20x%3D", {"a": "1", "b": "x="}),
        ("otlp_headers", {"A": "1"}, {"a": "1"}),
        ("otlp_headers", [{"name": "A", "value": "1"}, {"name": "b", "value": None}], {"a": "1", "b": ""}),
        ("otlp_timeout", "500ms", 0.5),
        ("otlp_protocol", "GRPC", "grpc"),
        ("otlp_insecure", "true", True),
    ],
)
def test_settings_of_otlp_are_options_too(name, value, kept):
    """In the forms of code, of variables and of OpenTelemetry's configuration schema."""
    config = ProfilerConfig(**{name: value})
    assert getattr(config, name) == kept
    assert hash(config) == hash(dataclasses.replace(config))


@pytest.mark.parametrize(
    "options",
    [
        {"otlp_endpoint": "http://user:sesame@"},
        {"otlp_endpoint": "sesame sesame"},
        {"otlp_endpoint": 5},
        {"otlp_headers": "sesame"},
        {"otlp_headers": {"key": "sesame\n"}},
        {"otlp_headers": {"ses ame": "x"}},
        {"otlp_headers": ["sesame"]},
        {"otlp_headers": [{"value": "sesame"}]},
        {"otlp_headers": 5},
    ],
)
def test_what_may_hold_a_secret_is_refused_without_its_text(options, warnings_logged):
    """In code by an error, elsewhere by a line; a good one is not in the repr."""
    (name,) = options
    with pytest.raises(ConfigurationError, match=rf"^{name} is not allowed \(allowed: [^)]*\)$"):
        ProfilerConfig(**options)
    assert getattr(ProfilerConfig.from_options(options), name) is None
    (line,) = warnings_logged()
    assert line.startswith(f"option {name} is not allowed (allowed: ")
    assert "sesame" not in line
    assert "sesame" not in repr(ProfilerConfig(otlp_headers={"a": "sesame"}, otlp_endpoint="http://u:sesame@h"))
