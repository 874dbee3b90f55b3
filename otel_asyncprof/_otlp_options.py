"""What OTLP settings may be, wherever they come from: code, a declarative configuration file, variables."""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

_GRPC_NAME_CHARACTERS = set("-._0123456789abcdefghijklmnopqrstuvwxyz")
_NAME_CHARACTERS = set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")


def is_url(value: str) -> bool:
    """Whether this is a URL of HTTP with a host."""
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def is_grpc_target(value: str) -> bool:
    """Whether this is such a URL, or something that gRPC may resolve: host:port, unix:path and so on."""
    try:
        if urlsplit(value).scheme in ("http", "https"):
            return is_url(value)
    except ValueError:
        return False
    return bool(value) and not any(character.isspace() for character in value)


def endpoint(value: object) -> str:
    """An endpoint of either protocol."""
    if not isinstance(value, str) or not is_grpc_target(value.strip()):
        raise ValueError("endpoint")
    return value.strip()


def headers(value: object) -> dict[str, str]:
    """Headers by lower-case names: out of a mapping, out of text as in a variable, or out of {name, value} pairs."""
    pairs: Iterable[tuple[object, object]]
    if isinstance(value, str):
        pairs = [split_pair(pair) for pair in value.split(",") if pair.strip()]
    elif isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, Iterable):
        pairs = [(item.get("name"), item.get("value") or "") for item in map(_as_mapping, value)]
    else:
        raise ValueError("headers")
    checked = {}
    for name, content in pairs:
        if not isinstance(name, str) or not is_header_name(name.lower()) or not is_header_value(content):
            raise ValueError("headers")
        checked[name.lower()] = str(content)
    return checked


def _as_mapping(item: object) -> Mapping[str, object]:
    return item if isinstance(item, Mapping) else {}


def split_pair(pair: str) -> tuple[str, str]:
    """Name and value of one percent-encoded name=value; no name where there is no "="."""
    name, equals, value = (part.strip() for part in pair.partition("="))
    return (unquote(name).strip().lower(), unquote(value).strip()) if equals else ("", "")


def is_header_name(name: str) -> bool:
    """Whether HTTP takes it as the name of a header."""
    return bool(name) and set(name) <= _NAME_CHARACTERS


def is_grpc_header_name(name: str) -> bool:
    """The same for gRPC, which keeps some for itself, and takes others as bytes."""
    reserved = name.startswith("grpc-") or name.endswith("-bin")
    return bool(name) and set(name) <= _GRPC_NAME_CHARACTERS and not reserved


def is_header_value(value: object) -> bool:
    """Whether it is text that HTTP and gRPC take as the value of a header."""
    if not isinstance(value, str) or value != value.strip():
        return False
    return all(" " <= character <= "~" or character == "\t" for character in value)
