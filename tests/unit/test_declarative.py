"""An exporter in a configuration file, in the form that OpenTelemetry's schema gives the exporters of other signals."""

import dataclasses

import pytest
from opentelemetry.configuration import models

from otel_asyncprof import ProfilerConfig
from otel_asyncprof._declarative import without_blocks

BLOCKS = [
    ({"console": None}, {"exporter": "console"}),
    ({"otlp_http": None}, {"exporter": "otlp_proto_http"}),
    ({"otlp_http": {"endpoint": None, "encoding": "protobuf", "tls": None}}, {"exporter": "otlp_proto_http"}),
    ({"otlp_grpc": {"endpoint": "h:1"}}, {"exporter": "otlp_proto_grpc", "otlp_endpoint": "h:1"}),
    ({"otlp_grpc": {"timeout": 1500}}, {"exporter": "otlp_proto_grpc", "otlp_timeout": 1.5}),
    ({"otlp_grpc": {"compression": "gzip"}}, {"exporter": "otlp_proto_grpc", "otlp_compression": "gzip"}),
    (
        {"otlp_grpc": {"tls": {"ca_file": "/ca", "cert_file": "/cert", "key_file": "/key", "insecure": False}}},
        {
            "exporter": "otlp_proto_grpc",
            "otlp_certificate": "/ca",
            "otlp_client_certificate": "/cert",
            "otlp_client_key": "/key",
            "otlp_insecure": False,
        },
    ),
    (
        {"otlp_http": {"headers": [{"name": "a", "value": "1"}], "headers_list": "a=2,b=3"}},
        {"exporter": "otlp_proto_http", "otlp_headers": {"a": "1", "b": "3"}},
    ),
    ({"otlp_http": {"headers_list": "a=2"}}, {"exporter": "otlp_proto_http", "otlp_headers": {"a": "2"}}),
    ({"otlp_file/development": {"output_stream": "file:///x"}}, {"exporter": "file", "file": "/x"}),
]


@pytest.mark.parametrize(("block", "expected"), BLOCKS)
def test_a_block_sets_the_options_of_its_exporter(block, expected, warnings_logged):
    """All others stay at their defaults."""
    config = ProfilerConfig.from_options(without_blocks({"rate": 50, "exporter": block}))
    changed = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if getattr(config, field.name) != field.default
    }
    assert changed == {"rate": 50, **expected}
    assert warnings_logged() == []


@pytest.mark.parametrize("model", [models.OtlpHttpExporter, models.OtlpGrpcExporter, models.HttpTls, models.GrpcTls])
def test_every_setting_of_the_schema_is_known(model, warnings_logged):
    """So that a new one is found here."""
    good = {"endpoint": "http://h", "compression": "gzip", "timeout": 5, "headers_list": "a=1", "encoding": "protobuf"}
    good |= {"headers": [{"name": "a", "value": "1"}], "insecure": True, "tls": {}}
    names = {field.name for field in dataclasses.fields(model)}
    block = {name: good.get(name, "/file") for name in names}
    block = {"tls": block} if model in (models.HttpTls, models.GrpcTls) else block
    ProfilerConfig.from_options(without_blocks({"exporter": {"otlp_grpc": block}}))
    assert warnings_logged() == []


@pytest.mark.parametrize(
    ("exporter", "lines"),
    [
        ({}, ["option exporter='' is not allowed"]),
        ({"zipkin": {}}, ["option exporter='zipkin' is not allowed"]),
        (
            {"otlp_http": {"headers_list": "a=sesame"}, "console": None},
            ["option exporter='otlp_http, console' is not allowed"],
        ),
        ({"otlp_http": "sesame"}, ["otel_asyncprof has no option 'exporter.otlp_http'"]),
        ({"otlp_http": {"tls": "sesame"}}, ["otel_asyncprof has no option 'exporter.otlp_http.tls'"]),
        ({"otlp_http": {"tls": {"colour": 1}}}, ["otel_asyncprof has no option 'exporter.otlp_http.tls.colour'"]),
        ({"otlp_http": {"encoding": "json"}}, ["otel_asyncprof has no option 'exporter.otlp_http.encoding'"]),
        ({"otlp_http": {"timeout": "soon"}}, ["option otlp_timeout='soonms' is not allowed"]),
        ({"otlp_http": {"headers_list": "sesame"}}, ["option otlp_headers is not allowed"]),
        ({"otlp_http": {"headers_list": "sesame", "headers": [{"name": "a"}]}}, ["option otlp_headers is not allowed"]),
        ({"otlp_http": {"headers_list": "a=1", "headers": [{"key": "b"}]}}, ["option otlp_headers is not allowed"]),
    ],
)
def test_what_is_wrong_in_a_block_costs_one_line(exporter, lines, warnings_logged):
    """It names what is wrong and tells no secret; the rest is used."""
    config = ProfilerConfig.from_options(without_blocks({"rate": 50, "exporter": exporter}))
    assert config.rate == 50
    assert [line.partition(" (")[0] for line in warnings_logged()] == lines
    assert "sesame" not in "".join(warnings_logged())
