"""The resource of the tracer provider as protobuf."""

import pytest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as Message
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import ProxyTracerProvider

from otel_asyncprof.export._resource import ResourceReader, encode_resource


def test_the_encoding_is_that_of_the_official_exporters():
    """Every kind of value an attribute may have, with plain keys."""
    from opentelemetry.exporter.otlp.proto.common._internal import _encode_resource

    resource = Resource(
        {"s": "é", "b": True, "i": -5, "f": 0.5, "ss": ["a", "b"], "is": [1, 2], "bytes": b"\x00\xff", "empty": []}
    )
    assert Message.FromString(encode_resource(resource)) == _encode_resource(resource)


def test_a_value_that_protobuf_cannot_hold_does_not_lose_the_profile():
    """A number beyond 64 bits becomes text, half a surrogate pair a question mark."""
    message = Message.FromString(encode_resource(Resource({"big": 1 << 70, "half": "x\udc80"})))
    assert {item.key: item.value.string_value for item in message.attributes} == {"big": str(1 << 70), "half": "x?"}


def test_without_an_sdk_provider_the_resource_comes_from_the_environment(monkeypatch):
    """As the SDK would make it."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    encoded, _ = ResourceReader().read(ProxyTracerProvider())
    assert ("service.name", "shop") in [(a.key, a.value.string_value) for a in Message.FromString(encoded).attributes]


def test_a_provider_that_comes_late_is_heard():
    """The next export has its resource."""
    reader = ResourceReader()
    reader.read(ProxyTracerProvider())
    encoded, schema_url = reader.read(TracerProvider(resource=Resource({"a": "b"}, "http://schema")))
    assert [item.key for item in Message.FromString(encoded).attributes] == ["a"]
    assert schema_url == "http://schema"


def test_an_interpreter_that_is_ending_has_a_resource_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its detectors' threads cannot be made any more."""

    def refuse() -> Resource:
        raise RuntimeError("cannot schedule new futures after shutdown")

    monkeypatch.setattr(Resource, "create", refuse)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    encoded, _ = ResourceReader().read(ProxyTracerProvider())
    assert b"shop" in encoded
    assert b"process.pid" in encoded
