"""OTLP/JSON, OTLP protobuf and recorded files: what goes in comes out again, and what is foreign is named."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from conformance import check_request
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from recordings import profiles, recording, traces

from otel_asyncprof.errors import UnreadableRecording
from otel_asyncprof.formats.choice import FORMATS, for_file
from otel_asyncprof.formats.otlp import messages_of, to_otlp
from otel_asyncprof.formats.otlp_json import json_line, read_json, to_otlp_json
from otel_asyncprof.formats.recording import read_recording, to_recording
from otel_asyncprof.formats.stack_sample import stack_samples
from otel_asyncprof.formats.subset import only_running


def test_a_recording_comes_back_from_json_as_it_was() -> None:
    """Every field of every message, profiles and traces."""
    original = recording()
    assert read_recording(to_recording(original)) == original


def test_profiles_come_back_from_protobuf_as_they_were() -> None:
    """Messages behind their lengths."""
    original = [*profiles(), *profiles(service="other", pid=2)]
    assert [ProfilesData.FromString(message) for message in messages_of(to_otlp(original))] == original
    assert read_recording(to_otlp(original)).profiles == original


def test_ids_are_hexadecimal_and_enumerations_numbers() -> None:
    """As OTLP/JSON demands, and as a Collector reads it."""
    (span, query) = json.loads(json_line(traces()))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (span["traceId"], span["spanId"], span["kind"]) == ("0102030405060708090a0b0c0d0e0f10", "0a" * 8, 2)
    assert query["parentSpanId"] == span["spanId"]
    assert query["startTimeUnixNano"] == "1005000000"
    document = json.loads(to_otlp_json(profiles()))
    profile = document["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]
    assert re.fullmatch("[0-9a-f]{32}", profile["profileId"])
    links = document["dictionary"]["linkTable"]
    assert links[0] == {}
    assert {link["spanId"] for link in links[1:]} == {"0a" * 8, "0b" * 8}


def test_ids_in_the_base64_of_protobufs_own_json_are_read_too() -> None:
    """Not OTLP/JSON, but what MessageToJson makes of a message."""
    from google.protobuf.json_format import MessageToDict

    (original,) = profiles()
    read = ProfilesData()
    read_json(MessageToDict(original), read)
    assert read == original


@pytest.mark.parametrize("change", [gzip.compress, lambda content: content.replace(b"\n", b"\n\n"), bytes.strip])
def test_a_recording_is_read_compressed_with_empty_lines_and_without_the_last_newline(change) -> None:
    """What editors, shells and gzip do to it."""
    original = recording()
    assert read_recording(change(to_recording(original))) == original


def test_one_document_laid_out_for_people_is_read() -> None:
    """As jq prints it."""
    (original,) = profiles()
    text = json.dumps(json.loads(json_line(original)), indent=2)
    assert read_recording(text.encode()).profiles == [original]


def test_single_protobuf_messages_are_read_for_what_they_are() -> None:
    """Profiles and traces differ in their dictionary and their spans."""
    (of_profiles,), of_traces = profiles(), traces()
    assert read_recording(of_profiles.SerializeToString()).profiles == [of_profiles]
    assert read_recording(of_traces.SerializeToString()).traces == [of_traces]


def test_other_signals_and_unknown_fields_are_passed_over() -> None:
    """A Collector's file holds metrics and logs, too, and a later protocol has more fields."""
    (original,) = profiles()
    document = json.loads(json_line(original)) | {"laterField": {"a": 1}}
    lines = [json.dumps({"resourceMetrics": []}), json.dumps(document), json.dumps({"resourceLogs": [{}]}), "{}"]
    read = read_recording("\n".join(lines).encode())
    assert (read.profiles, read.traces) == ([original], [])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty: nothing was recorded"),
        (b"\n \n", "it is empty: nothing was recorded"),
        (b"#!/bin/sh\necho hello\n", "it is neither OTLP/JSON nor OTLP protobuf"),
        (b"\x7fELF\x02\x01\x01" + bytes(200), "it is neither OTLP/JSON nor OTLP protobuf"),
        (b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "it is a speedscope file"),
        (b'{"traceEvents": []}', "it is a Chrome trace"),
        (b'{"meta": {}, "threads": []}', "it is a Firefox profile"),
        (b'{"a": 1}', "it is JSON, but no OTLP"),
        (b"[1, 2]", "it is JSON, but no OTLP"),
        (b'{"resourceSpans": [1]}', "it is not valid OTLP/JSON: "),
        (b'{"resourceSpans": 7}', "it is not valid OTLP/JSON: "),
        (b'{"resourceProfiles": [], "dictionary": {"linkTable": [{"spanId": "zz00000000000000"}]}}', "is no id"),
        (b'{"resourceSpans": ' + b"[" * 200 + b"]" * 200 + b"}", "it is nested too deeply"),
        (b'{"resourceSpans":[]}\n{"resourceSp', "its last line is cut off"),
        (b'{"resourceSpans": "\xff"}', "it is not text"),
        (gzip.compress(b"{}" * 500, mtime=0)[:-12], "its compression is damaged, or its end is missing"),
    ],
)
def test_a_foreign_file_is_refused_with_one_clear_reason(content: bytes, reason: str) -> None:
    """Whatever somebody may name by mistake."""
    with pytest.raises(UnreadableRecording, match=re.escape(reason)) as refusal:
        read_recording(content)
    assert "\n" not in str(refusal.value)


def test_only_running_samples_remain_in_conformant_messages() -> None:
    """Tables hold nothing of what was taken out, and everything of what is left."""
    (original,) = profiles()
    (kept,) = only_running([original.SerializeToString()])
    check_request(ExportProfilesServiceRequest.FromString(kept))
    wanted = [sample for sample in stack_samples([original.SerializeToString()]) if sample.state != "waiting"]
    assert stack_samples([kept]) == wanted
    assert len(wanted) == 2


def test_messages_without_a_running_sample_are_left_out() -> None:
    """Nothing empty is written or sent."""
    (original,) = profiles()
    for profile in original.resource_profiles[0].scope_profiles[0].profiles:
        del profile.samples[:]
    assert only_running([original.SerializeToString()]) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", "otlp-json"),
        ("a.otlp.json", "otlp-json"),
        ("a.jsonl.gz", "otlp-json"),
        ("a.otlp", "otlp"),
        ("a.pb", "otlp"),
        ("a.pb.gz", "pprof"),
        ("a.pprof", "pprof"),
        ("A.SPEEDSCOPE.JSON", "speedscope"),
        ("a.collapsed", "collapsed"),
        ("a.chrome.json", "chrome"),
        ("a.gecko.json", "gecko"),
        ("a.gecko.json.gz", "gecko"),
        ("a.svg", None),
        ("a", None),
    ],
)
def test_a_suffix_names_a_format(name: str, expected: str | None) -> None:
    """The longest that fits; .gz compresses any of them."""
    found = for_file(name)
    assert (found.name if found else None) == expected


def test_the_command_line_offers_the_formats_that_there_are() -> None:
    """It names them without importing them."""
    from otel_asyncprof.cli.output import FORMAT_NAMES

    assert tuple(known.name for known in FORMATS) == FORMAT_NAMES
