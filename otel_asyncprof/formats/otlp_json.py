"""OTLP/JSON: one message a line, ids in hexadecimal, enumerations as numbers, as OpenTelemetry Collectors write it."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

_ID_BYTES = {"traceId": 16, "spanId": 8, "parentSpanId": 8, "profileId": 16}
_MAX_DEPTH = 64  # of a JSON document; attribute values may hold each other


def to_otlp_json(profiles: "Iterable[ProfilesData]") -> bytes:
    """All messages, one a line."""
    return b"".join(json_line(data) for data in profiles)


def json_line(message: "Message") -> bytes:
    """A TracesData or ProfilesData message as one line of OTLP/JSON."""
    from google.protobuf.json_format import MessageToDict

    document = MessageToDict(message, use_integers_for_enums=True)
    _change_ids(document, _to_hexadecimal, _MAX_DEPTH)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_json(document: Any, message: "Message") -> None:
    """Fills a message from a JSON document; ValueError when it does not fit. Unknown fields are passed over."""
    from google.protobuf.json_format import ParseDict, ParseError

    _change_ids(document, _to_base64, _MAX_DEPTH)
    try:
        ParseDict(document, message, ignore_unknown_fields=True)
    except ParseError as error:
        raise ValueError(str(error)) from None
    except (OverflowError, SystemError):  # by which protobuf answers 1e999, and half of a character
        raise ValueError("it holds a number or a text that is none") from None


def _change_ids(document: Any, change: Any, depth: int) -> None:
    if depth == 0:
        raise ValueError("it is nested too deeply")
    if isinstance(document, dict):
        for key, value in document.items():
            if key in _ID_BYTES and isinstance(value, str):
                document[key] = change(value, _ID_BYTES[key])
            elif isinstance(value, dict | list):
                _change_ids(value, change, depth - 1)
    elif isinstance(document, list):
        for item in document:
            if isinstance(item, dict | list):
                _change_ids(item, change, depth - 1)


def _to_hexadecimal(text: str, size: int) -> str:
    return b64decode(text).hex()


def _to_base64(text: str, size: int) -> str:
    if len(text) != 2 * size:  # not hexadecimal: what protobuf's own JSON has is understood, too
        return text
    try:
        return b64encode(bytes.fromhex(text)).decode()
    except ValueError:
        raise ValueError(f"{text!r} is no id") from None
