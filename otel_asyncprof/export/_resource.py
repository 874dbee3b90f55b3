"""The resource of the application, as the bytes of an opentelemetry.proto.resource.v1.Resource."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import TracerProvider

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


class ResourceReader:
    """Reads the tracer provider's resource each time, as a fork or a late provider changes it."""

    def __init__(self) -> None:
        self._without_provider: Resource | None = None
        self._encoded_resource: Resource | None = None
        self._encoded = b""

    def read(self, provider: TracerProvider) -> tuple[bytes, str]:
        """The serialised resource and its schema URL."""
        resource = getattr(provider, "resource", None)
        if not isinstance(resource, Resource):
            if self._without_provider is None:
                self._without_provider = _create_resource()
            resource = self._without_provider
        if resource is not self._encoded_resource:
            self._encoded = encode_resource(resource)
            self._encoded_resource = resource
        return self._encoded, resource.schema_url


def _create_resource() -> Resource:
    try:
        return Resource.create()
    except RuntimeError:
        # Its detectors run in threads, and an interpreter that is ending makes none: a fork's child that exits at once.
        name = os.environ.get("OTEL_SERVICE_NAME", "unknown_service")
        return Resource({"service.name": name, "process.pid": os.getpid()})


def encode_resource(resource: Resource) -> bytes:
    """The resource with plain keys and values: receivers do not resolve string indices in a resource."""
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage

    attributes = [_key_value(key, value) for key, value in resource.attributes.items()]
    return ResourceMessage(attributes=attributes).SerializeToString()


def _key_value(key: str, value: object) -> "KeyValue":
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue

    return KeyValue(key=key, value=_any_value(value))


def _any_value(value: object) -> "AnyValue":
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValueList

    match value:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=value)
        case int() if -(1 << 63) <= value < 1 << 63:
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value.encode(errors="replace").decode())
        case bytes():
            return AnyValue(bytes_value=value)
        case Mapping():
            return AnyValue(kvlist_value=KeyValueList(values=[_key_value(str(k), v) for k, v in value.items()]))
        case Sequence():
            return AnyValue(array_value=ArrayValue(values=[_any_value(item) for item in value]))
        case _:
            return AnyValue(string_value=str(value))
