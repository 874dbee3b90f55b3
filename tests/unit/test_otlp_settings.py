"""Where OTLP goes: arguments, variables of the signal, general variables, defaults."""

import pytest

from otel_asyncprof import ConfigurationError
from otel_asyncprof.export._otlp_settings import OtlpSettings, protocol_from_env, without_secrets

OWN = "OTEL_EXPORTER_OTLP_PROFILES_"
GENERAL = "OTEL_EXPORTER_OTLP_"

ENDPOINTS = [
    ("http/protobuf", {}, "http://localhost:4318/v1development/profiles"),
    ("http/protobuf", {GENERAL + "ENDPOINT": "http://c:1"}, "http://c:1/v1development/profiles"),
    ("http/protobuf", {GENERAL + "ENDPOINT": "https://c/base/"}, "https://c/base/v1development/profiles"),
    ("http/protobuf", {OWN + "ENDPOINT": "http://p:2/"}, "http://p:2/"),
    ("http/protobuf", {OWN + "ENDPOINT": "http://p/x", GENERAL + "ENDPOINT": "http://c"}, "http://p/x"),
    ("grpc", {}, "http://localhost:4317"),
    ("grpc", {GENERAL + "ENDPOINT": "http://c:1"}, "http://c:1"),
    ("grpc", {OWN + "ENDPOINT": "c:4317"}, "c:4317"),
]


@pytest.mark.parametrize(("protocol", "environ", "endpoint"), ENDPOINTS)
def test_the_base_url_gets_a_path_and_the_signal_url_does_not(protocol, environ, endpoint):
    """The rule of the OTLP specification; gRPC has no path."""
    assert OtlpSettings.resolve(protocol, environ=environ).endpoint == endpoint


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://x", "http://", "http://[::1"])
def test_a_bad_endpoint_gives_one_line_and_the_default(url, warnings_logged):
    """HTTP needs a scheme and a host."""
    settings = OtlpSettings.resolve("http/protobuf", environ={GENERAL + "ENDPOINT": url})
    assert settings.endpoint == "http://localhost:4318/v1development/profiles"
    assert len(warnings_logged()) == 1
    assert warnings_logged()[0].startswith("OTEL_EXPORTER_OTLP_ENDPOINT=")


def test_a_bad_endpoint_in_code_raises():
    """As every bad argument does."""
    with pytest.raises(ConfigurationError, match=r"^endpoint="):
        OtlpSettings.resolve("http/protobuf", endpoint="nowhere")


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({}, "http/protobuf"),
        ({GENERAL + "PROTOCOL": "grpc"}, "grpc"),
        ({OWN + "PROTOCOL": "http/protobuf", GENERAL + "PROTOCOL": "grpc"}, "http/protobuf"),
        ({OWN + "PROTOCOL": "grpc"}, "grpc"),
        ({OWN + "PROTOCOL": "carrier pigeon"}, "http/protobuf"),
    ],
)
def test_the_protocol_is_that_of_the_signal_then_the_general_one(environ, protocol):
    """The default is http/protobuf."""
    assert protocol_from_env(environ) == protocol


SCALARS = [
    ("TIMEOUT", "2.5", "timeout", 2.5, 10.0),
    ("COMPRESSION", "GZIP", "compression", "gzip", "none"),
    ("CERTIFICATE", "/ca", "certificate", "/ca", None),
    ("CLIENT_KEY", "/key", "client_key", "/key", None),
    ("CLIENT_CERTIFICATE", "/cert", "client_certificate", "/cert", None),
]


@pytest.mark.parametrize(("suffix", "text", "name", "value", "default"), SCALARS)
def test_each_setting_has_three_sources(suffix, text, name, value, default):
    """The signal's variable, the general one, the default."""
    for environ, expected in [
        ({OWN + suffix: text}, value),
        ({GENERAL + suffix: text}, value),
        ({OWN + suffix: text, GENERAL + suffix: "1"}, value),
        ({}, default),
    ]:
        assert getattr(OtlpSettings.resolve("http/protobuf", environ=environ), name) == expected


@pytest.mark.parametrize(("suffix", "text"), [("TIMEOUT", "soon"), ("TIMEOUT", "0"), ("COMPRESSION", "zip")])
def test_a_bad_setting_gives_one_line(suffix, text, warnings_logged):
    """It names the variable that held it, be it the general one."""
    OtlpSettings.resolve("http/protobuf", environ={GENERAL + suffix: text})
    assert [line.partition(" ")[0] for line in warnings_logged()] == [f"OTEL_EXPORTER_OTLP_{suffix}={text!r}"]


HEADERS = [
    ("a=b", {"a": "b"}),
    ("authorization=Bearer x", {"authorization": "Bearer x"}),
    ("authorization=Bearer%20x%3D%2C", {"authorization": "Bearer x=,"}),
    ("Authorization=Basic YQ==", {"authorization": "Basic YQ=="}),
    (" a = 1 , b = 2 ,", {"a": "1", "b": "2"}),
    ("a=", {"a": ""}),
]


@pytest.mark.parametrize(("text", "headers"), HEADERS)
def test_headers_arrive_as_they_are_meant(text, headers, warnings_logged):
    """Spaces, "=", percent signs and upper case included."""
    assert OtlpSettings.resolve("grpc", environ={OWN + "HEADERS": text}).headers == headers
    assert warnings_logged() == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a=1,sesame", "OTEL_EXPORTER_OTLP_HEADERS: pair 2 is not name=value and is left out"),
        ("ses ame=x,a=1", "OTEL_EXPORTER_OTLP_HEADERS: pair 1 is not name=value and is left out"),
        (
            "a=1,key=sesame%0Ax",
            "OTEL_EXPORTER_OTLP_HEADERS: the value of 'key' holds characters no header may have; it is left out",
        ),
    ],
)
def test_a_bad_header_is_told_without_its_value(text, line, warnings_logged):
    """What is no pair may be the secret itself; the good pairs stay."""
    assert OtlpSettings.resolve("grpc", environ={GENERAL + "HEADERS": text}).headers == {"a": "1"}
    assert warnings_logged() == [line]


@pytest.mark.parametrize(
    "headers",
    [
        {"key": "sesame\n"},
        {"key": "sesame\r\nx: y"},
        {"key": "sésame"},
        {"key": "sesame\0"},
        {"key": " sesame"},
        {"key": b"sesame"},
        {"key": 5},
        {"key": None},
    ],
)
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_bad_value_of_a_header_in_code_raises_without_it(protocol, headers):
    """What HTTP and gRPC would refuse at each export, with the value in the text of their error."""
    expected = r"^the value of the header 'key' is no text, or holds characters no header may have$"
    with pytest.raises(ConfigurationError, match=expected):
        OtlpSettings.resolve(protocol, headers=headers, environ={})


@pytest.mark.parametrize("name", ["", "authorization: sesame", "sesame\n", "sésame", b"sesame", None])
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_bad_name_of_a_header_in_code_raises_without_it(protocol, name):
    """It may be the secret itself."""
    with pytest.raises(ConfigurationError, match=r"^header 2 has a name that no header may have$"):
        OtlpSettings.resolve(protocol, headers={"a": "1", name: "x"}, environ={})


@pytest.mark.parametrize("name", ["a!", "grpc-timeout", "key-bin"])
def test_names_that_grpc_keeps_to_itself_are_left_out_there(name, warnings_logged):
    """HTTP takes them."""
    environ = {OWN + "HEADERS": f"{name}=sesame,a=1"}
    assert OtlpSettings.resolve("grpc", environ=environ).headers == {"a": "1"}
    assert warnings_logged() == [f"{OWN}HEADERS: gRPC takes no header {name!r}; it is left out"]
    assert OtlpSettings.resolve("http/protobuf", environ=environ).headers == {name: "sesame", "a": "1"}


def test_headers_in_code_are_added_to_those_of_the_environment():
    """And win over them; names are in lower case."""
    environ = {OWN + "HEADERS": "a=1,b=2"}
    assert OtlpSettings.resolve("grpc", headers={"B": "3"}, environ=environ).headers == {"a": "1", "b": "3"}


@pytest.mark.parametrize(
    ("url", "given", "variable", "insecure"),
    [
        ("https://c", True, "true", False),
        ("http://c", None, None, True),
        ("http://c", None, "false", False),
        ("http://c", True, "false", True),
        ("c:4317", None, None, False),
        ("c:4317", None, "true", True),
        ("c:4317", True, None, True),
    ],
)
def test_grpc_is_insecure_only_when_told_so(url, given, variable, insecure):
    """https never is; http is unless the variable says otherwise; without a scheme TLS is the default."""
    environ = {} if variable is None else {GENERAL + "INSECURE": variable}
    assert OtlpSettings.resolve("grpc", endpoint=url, insecure=given, environ=environ).insecure is insecure


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:sesame@host:1/path?key=sesame#sesame", "http://host:1/path"),
        ("user:sesame@host:1", "host:1"),
        ("host:4317", "host:4317"),
        ("http://user:ses/ame@host:1/path", "http://host:1/path"),
        ("http://user:ses@ame@host:1/path", "http://host:1/path"),
        ("http://user:ses?ame@host:1", "(not shown)"),
        ("http://user:ses#ame@host:1/path?key=a", "(not shown)"),
        ("http://host/path?user=a@b&key=sesame", "(not shown)"),
        ("http:/user:sesame@host:1/path", "host:1/path"),
        ("http:user:sesame@host:1", "host:1"),
        ("http://user:http://sesame@host:1", "host:1"),
        ("user:sesame://host", "(not shown)"),
        ("[::1?sesame", "[::1"),
        ("unix:///tmp/socket", "unix:///tmp/socket"),
        ("dns://1.1.1.1/host:1", "dns://1.1.1.1/host:1"),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url, shown):
    """User, password, query and fragment."""
    assert without_secrets(url) == shown


def test_the_repr_of_the_settings_holds_no_secret():
    """Headers and the endpoint are not in it."""
    settings = OtlpSettings.resolve("grpc", endpoint="http://u:sesame@h", headers={"a": "sesame"}, environ={})
    assert "sesame" not in repr(settings)
